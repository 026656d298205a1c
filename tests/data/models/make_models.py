#!/usr/bin/env python3
"""Makes small models with random weights as the transformers library writes them, and what it
computes with them: logits of whole sequences, and what generating greedily gives.

    pip install torch transformers numpy
    python tests/data/models/make_models.py
"""

import json
from pathlib import Path

import numpy as np
import torch
import transformers as t

HERE = Path(__file__).parent
MODELS = {
    "gpt2": lambda: t.GPT2LMHeadModel(
        t.GPT2Config(vocab_size=61, n_positions=32, n_embd=16, n_layer=2, n_head=4)),
    "llama": lambda: t.LlamaForCausalLM(
        t.LlamaConfig(vocab_size=53, hidden_size=16, intermediate_size=28, num_hidden_layers=2,
                      num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=48,
                      rms_norm_eps=1e-5, rope_theta=5000.0)),
    "mamba": lambda: t.MambaForCausalLM(
        t.MambaConfig(vocab_size=47, hidden_size=12, state_size=4, num_hidden_layers=2,
                      conv_kernel=3, time_step_rank=3)),
}


def spread(model):
    """Weights large enough that the logits differ."""
    generator = torch.Generator().manual_seed(7)
    for name, p in model.named_parameters():
        if p.ndim >= 2 and "A_log" not in name:
            p.data = torch.randn(p.shape, generator=generator) * 0.4
        elif "norm" in name or "ln_" in name or name.endswith("bias"):
            p.data = p.data + torch.randn(p.shape, generator=generator) * 0.1


def strip(folder):
    """The configuration without the names of versions, which change."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config.pop("transformers_version", None)
    path.write_text(json.dumps(config, indent=1, sort_keys=True) + "\n")
    (folder / "generation_config.json").unlink(missing_ok=True)


def main():
    for name, make in MODELS.items():
        torch.manual_seed(1)
        model = make().eval()
        spread(model)
        model.tie_weights()
        folder = HERE / name
        model.save_pretrained(folder)
        strip(folder)
        tokens = torch.randint(0, model.config.vocab_size, (2, 9),
                               generator=torch.Generator().manual_seed(3))
        with torch.no_grad():
            logits = model(tokens).logits
            longer = tokens
            for _ in range(8):  # greedily, from the whole sequence every time
                longer = torch.cat([longer, model(longer).logits[:, -1:].argmax(-1)], 1)
        np.savez(folder / "expected.npz", tokens=tokens.numpy().astype(np.int32),
                 logits=logits.numpy(), greedy=longer[:, 9:].numpy().astype(np.int32))


if __name__ == "__main__":
    main()
