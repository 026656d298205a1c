#!/usr/bin/env python3
"""Writes tests/dataset/values/tokenizer_*.json and what the Python package `tokenizers` makes of
texts with them: a line a text, in hex, a colon, and its tokens without those that frame a text; of those
whose tokens are characters a colon more, and the text that these tokens are. Needs `pip install
tokenizers`."""

import json
from pathlib import Path

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

HERE = Path(__file__).parent / "values"
CORPUS = """The quick brown fox jumps over the lazy dog. It's the fox's day, isn't it? They'll say we've
been here before; I'd rather not. The dogs, the foxes and the 123 quick brown cats were there in 1999.
  def quick(x):\n      return x * 2  # twice\n\tif x == 10: print("quick")\n
Über den Flüssen, größer als Bäume; déjà vu à l'été. Привет мир, как дела? 你好世界，你好。 ½ ² Ⅷ ١٢٣
the the the the quick quick brown brown there then them these those thing think thinking thinks""" * 3
TEXTS = [
    "", " ", "  ", "a", " a", "  a", "   a b", "Hello world", "the quick brown fox", "it's they'll WE'VE I'd 'tis",
    "line one\nline two\r\n\r\n  three\t\tfour  ", "trailing spaces   ", "\n\n\n", " \n x", "123 456abc abc456 ½²Ⅷ",
    "Über größer déjà vu", "Привет мир", "你好世界，你好", "🙂 emoji 👩‍👩‍👧‍👦 done", "a\u00a0b\u3000c\u2003d", "!!!...??? -- ==",
    "x <|end|> y", "x<|end|><|end|>y", "<|end|>", " [MASK] b", "a  [MASK]  b", "x[MASK]y", "word wordy sword word_ word.",
    "caf\u00e9 cafe\u0301", "\u0000\u0001\u007f", "don't DON'T don't", "the" * 50, "thinking thinks thing", "a'sb 's's 'll",
    "\u200b\u200d\ufeff", "१२३ ߁߂", "ʰ ª º ǅ", "  \u2028  x", "_under_score_ 9_9",
]
# What splits by lines and digits looks at, and forms of one character.
MORE_TEXTS = [
    "12345678 1 22 333 4444", "IT'S I'LL We'Ve 'Tis it'\u017f x'LLy", "a\n\n\nb\r\n c", "  \n  \n  x", " \n", "\n x", "\t\tx\tword",
    "x = f(a, b)[0];\n\n  return -1 // done\n", "...\n\n...", " ...\r\n", "?!\n \n", "(word) [word]\u00a0word \u3000词", "a  \u2028\n b",
    "e\u0301\u0323 \u1e69 s\u0307\u0323", "\u1100\u1161\u11a8 \uac01", "\u212b \u2126 \ufb01", "cafe\u0301 <|end|> cafe\u0301",
    "\u0344 \u0958 \u2adc", "½x²3", "'s's", "'S", "''s", "it''s", "9's 9'S", "\u00b2\u00b3\u00b9\u2070", "   ", "a   ", "a \n ",
]
LINES = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")


def by_lines(digits):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LINES % digits), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def trained(pre_tokenizer, normalizer=None):
    t = Tokenizer(models.BPE())
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizer
    t.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=480, min_frequency=2, special_tokens=["<|end|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    t.train_from_iterator([CORPUS], trainer)
    return t


def with_bytes(t, missing=()):
    """As SentencePiece has it: three special tokens, the bytes, then the others."""
    file = json.loads(t.to_str())
    model = file["model"]
    first = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256) if b not in missing]
    others = [token for token, _ in sorted(model["vocab"].items(), key=lambda x: x[1]) if token not in first]
    model |= {"vocab": {token: i for i, token in enumerate(first + others)}, "unk_token": "<unk>",
              "byte_fallback": True, "fuse_unk": True}
    file["added_tokens"] = []
    out = Tokenizer.from_str(json.dumps(file))
    out.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in first[:3]])
    return out


def of_characters(split, prefix):
    """Words are taken apart while it is trained, as SentencePiece does."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=prefix, split=True)
    trainer = trainers.BpeTrainer(vocab_size=300, min_frequency=2, special_tokens=["<unk>", "<s>", "</s>"],
                                  limit_alphabet=60, show_progress=False)
    t.train_from_iterator([CORPUS], trainer)
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=prefix, split=split)
    t.decoder = decoders.Metaspace(prepend_scheme=prefix)
    return t


def llama2(t):
    t.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    file = json.loads(t.to_str())
    file["pre_tokenizer"] = None
    t = Tokenizer.from_str(json.dumps(file))
    t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                   decoders.Strip(content=" ", left=1)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return t


def write(name, t, decoded=False):
    t.save(str(HERE / f"tokenizer_{name}.json"), pretty=False)
    lines = []
    for text in TEXTS + MORE_TEXTS:
        ids = t.encode(text, add_special_tokens=False).ids
        lines.append(f"{text.encode().hex()}:{' '.join(map(str, ids))}")
        if decoded:
            lines[-1] += f":{t.decode(ids, skip_special_tokens=False).encode().hex()}"
    (HERE / f"tokenizer_{name}.txt").write_text("\n".join(lines) + "\n")


def main():
    HERE.mkdir(exist_ok=True)
    (HERE / "tokenizer_corpus.txt").write_text(CORPUS, newline="")
    write("plain", trained(pre_tokenizers.ByteLevel(add_prefix_space=False)))
    prefix = trained(pre_tokenizers.ByteLevel(add_prefix_space=True))
    prefix.add_tokens([AddedToken("word", single_word=True, normalized=False)])
    prefix.add_special_tokens([AddedToken("[MASK]", lstrip=True, rstrip=True)])
    write("prefix", prefix)
    # As GPT-NeoX, Llama 3 and Qwen have it.
    neox = trained(pre_tokenizers.ByteLevel(add_prefix_space=False), normalizers.NFC())
    neox.post_processor = processors.TemplateProcessing(single="$0", pair="$A $B", special_tokens=[])
    neox.add_tokens([AddedToken("caf\u00e9", normalized=True)])
    write("nfc", neox)
    llama = trained(by_lines("{1,3}"))
    llama.post_processor = processors.Sequence([processors.ByteLevel(), processors.TemplateProcessing(
        single="<|end|> $A", special_tokens=[("<|end|>", 0)])])
    write("lines", llama)
    write("digits", trained(by_lines(""), normalizers.NFC()))
    # As Llama 2 and Mistral have it; and the ways in which others say the same.
    write("llama2", llama2(with_bytes(of_characters(False, "always"))), decoded=True)
    spaces = with_bytes(of_characters(True, "always"), missing=range(0xE0, 0xE5))
    spaces.add_special_tokens([AddedToken("[MASK]", lstrip=True, rstrip=True)])
    write("metaspace", spaces, decoded=True)
    later = with_bytes(of_characters(False, "first"))
    later.normalizer = normalizers.Replace("'", "\u2019")
    later.add_tokens([AddedToken("it's", normalized=True), AddedToken("<|end|>", normalized=False)])
    write("first", later, decoded=True)
    write("never", with_bytes(of_characters(True, "never"), missing=range(256)), decoded=True)


main()
