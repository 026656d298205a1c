"""The workloads in PyTorch: eager, and through torch.compile; training with its fused AdamW.

On a GPU where RICCI_PEER_DEVICE says `cuda`: there a call may also be captured as a CUDA graph."""

import os

DEVICE = os.environ.get("RICCI_PEER_DEVICE", "cpu")
os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
if DEVICE == "cpu":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""

import torch
import torch.nn.functional as F

from worker import is_state, param_names, serve

SCAN_CHUNK = 50  # steps compiled together; a compiled loop is unrolled
GRAPH = " as a CUDA graph"
RECURRENT_CHUNK = 16  # the same for steps of many operations


def tensor(array):
    t = torch.from_numpy(array.copy()).to(DEVICE)
    return t.long() if t.dtype == torch.int32 else t


def wait_for_device():
    if DEVICE != "cpu":
        torch.cuda.synchronize()


def array_of(t):
    return t.detach().float().cpu().numpy() if t.dtype == torch.bfloat16 else t.detach().cpu().numpy()


def linear(p, name, x):
    return torch.addmm(p[name + ".b"], x.reshape(-1, x.shape[-1]), p[name + ".w"]).reshape(
        *x.shape[:-1], -1)


def mlp_loss(p, batch):
    h = torch.relu(linear(p, "layer1", batch["x"]))
    h = torch.relu(linear(p, "layer2", h))
    return F.cross_entropy(linear(p, "layer3", h), batch["labels"])


def gpt_loss_of(layers, heads):
    def loss(p, batch):
        def norm(name, x):
            return F.layer_norm(x, x.shape[-1:], p[name + ".gamma"], p[name + ".beta"])

        x = F.embedding(batch["ids"], p["tokens"]) + p["positions"]
        size, length, width = x.shape
        for i in range(layers):
            block = f"block{i}"
            qkv = linear(p, block + ".qkv", norm(block + ".norm1", x))
            q, k, v = (part.view(size, length, heads, width // heads).transpose(1, 2)
                       for part in qkv.split(width, dim=2))
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            mixed = mixed.transpose(1, 2).reshape(size, length, width)
            x = x + linear(p, block + ".proj", mixed)
            up = linear(p, block + ".up", norm(block + ".norm2", x))
            x = x + linear(p, block + ".down", F.gelu(up, approximate="tanh"))
        logits = linear(p, "head", norm("norm", x))
        return F.cross_entropy(logits.view(size * length, -1), batch["labels"].view(-1))

    return loss


def cnn_loss(p, batch):
    h = batch["x"]
    for i in (1, 2, 3):
        h = F.max_pool2d(torch.relu(F.conv2d(h, p[f"conv{i}.w"], p[f"conv{i}.b"], padding=1)), 2)
    return F.cross_entropy(linear(p, "dense", h.flatten(1)), batch["labels"])


class TrainCase:
    def __init__(self, loss, feeds, compiled, channels_last=False):
        layout = lambda t: (t.contiguous(memory_format=torch.channels_last)
                            if channels_last and t.dim() == 4 else t)
        self.loss_of = torch.compile(loss) if compiled else loss
        self.first = {n: layout(tensor(a)) for n, a in feeds.items() if is_state(n)}
        self.batch = {n: layout(tensor(a)) for n, a in feeds.items() if not is_state(n)}
        self.params = {n: self.first[n].clone().requires_grad_() for n in param_names(feeds)}
        self.optimiser = torch.optim.AdamW(self.params.values(), lr=1e-3, betas=(0.9, 0.999),
                                           eps=1e-8, weight_decay=0.01, fused=True,
                                           capturable=DEVICE != "cpu")
        for name, p in self.params.items():
            self.optimiser.state[p] = {"step": self.first["step"].clone(),
                                       "exp_avg": self.first["m." + name].clone(),
                                       "exp_avg_sq": self.first["v." + name].clone()}

    @torch.no_grad()
    def reset(self):
        for name, p in self.params.items():
            p.copy_(self.first[name])
            state = self.optimiser.state[p]
            state["step"].copy_(self.first["step"])
            state["exp_avg"].copy_(self.first["m." + name])
            state["exp_avg_sq"].copy_(self.first["v." + name])

    def call(self):
        self.optimiser.zero_grad(set_to_none=True)
        self.loss = self.loss_of(self.params, self.batch)
        self.loss.backward()
        self.optimiser.step()

    def wait(self):
        wait_for_device()

    def outputs(self):
        out = {"loss": array_of(self.loss)}
        for name, p in self.params.items():
            state = self.optimiser.state[p]
            out["step"] = array_of(state["step"])
            out[name] = array_of(p)
            out["m." + name] = array_of(state["exp_avg"])
            out["v." + name] = array_of(state["exp_avg_sq"])
        return out


class PureCase:
    """A function of nothing that gives tensors by name."""

    def __init__(self, function):
        self.function = function

    def reset(self):
        pass

    def call(self):
        self.result = self.function()

    def wait(self):
        wait_for_device()

    def outputs(self):
        return {name: array_of(t) for name, t in self.result.items()}


class Graphed:
    """A case whose calls are captured as one CUDA graph; the first ones run, and warm up."""

    def __init__(self, case):
        self.case, self.graph = case, None

    def reset(self):
        self.case.reset()

    def call(self):
        if self.graph is not None:
            self.graph.replay()
            return
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.case.call()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.case.call()
        self.case.reset()
        self.graph = graph
        self.graph.replay()

    def wait(self):
        wait_for_device()

    def outputs(self):
        return self.case.outputs()


def in_bf16(loss):
    def cast(p, batch):
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            return loss(p, batch)

    return cast


def with_compile(function, compiled, **options):
    return torch.compile(function, **options) if compiled else function


def gradients_case(function, inputs, wrt, compiled, dy=None):
    """Gradients of function(*inputs.values()) in the inputs of `wrt`; a scalar needs no `dy` and
    is given as well."""
    run = with_compile(function, compiled)
    for name in wrt:
        inputs[name].requires_grad_()
    arguments, targets = list(inputs.values()), [inputs[name] for name in wrt]
    names = ["d_" + name for name in wrt]

    def call():
        y = run(*arguments)
        found = dict(zip(names, torch.autograd.grad(y, targets, dy)))
        if dy is None:
            found["loss"] = y
        return found

    return PureCase(call)


def rows(x, g, b, gamma, beta):
    h = F.gelu(x * g + b) + x
    return torch.softmax(F.layer_norm(h, h.shape[-1:], gamma, beta), dim=-1)


def recurrence(a, xs, c):
    for x in xs.unbind(0):
        c = c + 0.01 * torch.tanh(torch.addmm(x, c, a))
    return c


def recurrence_in_chunks():
    chunk = torch.compile(recurrence)

    def run(a, xs, c):
        for part in xs.split(SCAN_CHUNK):
            c = chunk(a, part, c)
        return c

    return run


def make_scan(workload, variant, t):
    run = recurrence if variant == "eager" else recurrence_in_chunks()
    inputs = {n: t[n] for n in ("a", "xs", "c0")}
    if workload == "scan_grad":
        total = lambda a, xs, c0: run(a, xs, c0).sum()
        return gradients_case(total, inputs, list(inputs), compiled=False)

    def forward():
        with torch.inference_mode():
            return {"c": run(*inputs.values())}

    return PureCase(forward)


def state_space(a, h, x, delta, b, c):
    out = []
    for x_t, delta_t, b_t, c_t in zip(*(s.unbind(1) for s in (x, delta, b, c))):
        h = torch.exp(delta_t[..., None] * a) * h + (delta_t * x_t)[..., None] * b_t[:, None]
        out.append(torch.einsum("bjm,bm->bj", h, c_t))
    return torch.stack(out, 1), h


def gated_delta(_, s, q, k, v, g, beta):
    out = []
    for q_t, k_t, v_t, g_t, beta_t in zip(*(s.unbind(1) for s in (q, k, v, g, beta))):
        s = torch.exp(g_t)[..., None, None] * s
        d = beta_t[..., None] * (v_t - torch.einsum("bhij,bhi->bhj", s, k_t))
        s = s + k_t[..., None] * d[..., None, :]
        out.append(torch.einsum("bhij,bhi->bhj", s, q_t) * (q.shape[-1] ** -0.5))
    return torch.stack(out, 1), s


def make_recurrent(workload, variant, t):
    if workload == "gated_delta_grad":
        inputs = {n: t[n] for n in ("q", "k", "v", "g", "beta")}
        step, fixed = gated_delta, None
        first = torch.zeros(t["q"].shape[0], *t["v"].shape[2:3], t["q"].shape[3], t["v"].shape[3],
                            device=DEVICE)
    else:
        inputs = {n: t[n] for n in ("a", "x", "delta", "b", "c")}
        step, fixed = state_space, "a"
        first = torch.zeros(t["x"].shape[0], *t["a"].shape, device=DEVICE)
    chunk = with_compile(step, variant == "chunks")
    length = RECURRENT_CHUNK if variant == "chunks" else t["d_output"].shape[1]

    def run(*arguments):
        given = dict(zip(inputs, arguments))
        state, out = first, []
        whole = given.pop(fixed) if fixed else None
        for parts in zip(*(a.split(length, 1) for a in given.values())):
            y, state = chunk(whole, state, *parts)
            out.append(y)
        return torch.cat(out, 1)

    return gradients_case(run, inputs, list(inputs), False, t["d_output"])


def make_ordered(workload, variant, t, settings):
    def forward():
        with torch.inference_mode():
            if workload == "top_k":
                values, indices = torch.topk(t["x"], settings["k"])
            else:
                values, indices = torch.sort(t["x"], stable=variant == "stable")
            return {"values": values, "indices": indices}

    return PureCase(forward)


def make_random(settings):
    return PureCase(lambda: {"random": torch.randn(settings["count"], device=DEVICE)})


def make_hvp(variant, t):
    names = [n.removeprefix("tangent_") for n in t if n.startswith("tangent_")]
    p = {n: t[n] for n in names}
    tangents = {n: t["tangent_" + n] for n in names}
    batch = {n: t[n] for n in ("x", "labels")}
    name_all = lambda values: {"hv_" + n: a for n, a in values}
    if variant == "double_backward":
        for q in p.values():
            q.requires_grad_()

        def call():
            found = torch.autograd.grad(mlp_loss(p, batch), p.values(), create_graph=True)
            return name_all(zip(names, torch.autograd.grad(found, p.values(), tangents.values())))

        return PureCase(call)

    def product(p, tangents, batch):
        gradient = torch.func.grad(lambda q: mlp_loss(q, batch))
        return torch.func.jvp(gradient, (p,), (tangents,))[1]

    run = with_compile(product, variant == "compile")
    return PureCase(lambda: name_all(run(p, tangents, batch).items()))


def make_hessian(variant, t):
    def loss(w, x, y):
        z = x @ w
        return torch.mean(F.softplus(z) - y * z)

    run = with_compile(torch.func.hessian(loss), variant == "compile")
    return PureCase(lambda: {"hessian": run(t["w"], t["x"], t["y"])})


def make_forward(function, arguments, compiled):
    run = with_compile(function, compiled)

    def forward():
        with torch.inference_mode():
            return {"y": run(*arguments)}

    return PureCase(forward)


def stft(x, length=512, hop=128):
    frames = x.unfold(-1, length, hop)
    return torch.fft.rfft(frames * torch.hann_window(length))


TRANSFORMS = {"fft_65536": torch.fft.fft, "fft_100000": torch.fft.fft,
              "fft_512x512": torch.fft.fft2, "stft": stft}


def make_spectral(workload, a, compiled):
    def eigh(a):
        w, v = torch.linalg.eigh((a + a.T) * 0.5)
        return {"w": w, "v2": v * v}

    def svd(a):
        u, s, vh = torch.linalg.svd(a, full_matrices=False)
        return {"s": s, "u2": u * u, "vh2": vh * vh}

    run = with_compile(eigh if workload == "eigh_256" else svd, compiled)

    def forward():
        with torch.inference_mode():
            return run(a)

    return PureCase(forward)


def experts(x, w, i):
    """Rows in the order of their experts, a product for each, and back."""
    order = torch.argsort(i)
    counts = torch.bincount(i, minlength=w.shape[0]).tolist()
    parts = [part @ w[e] for e, part in enumerate(x[order].split(counts))]
    return x.new_empty(x.shape[0], w.shape[2]).index_copy_(0, order, torch.cat(parts))


def make_pure(workload, variant, t):
    compiled = variant == "compile"
    if workload == "fused_rows_fwd":
        return make_forward(rows, [t[n] for n in ("x", "g", "b", "gamma", "beta")], compiled)
    if workload == "fused_rows_grad":
        inputs = {n: t[n] for n in ("x", "g", "b", "gamma", "beta")}
        return gradients_case(rows, inputs, list(inputs), compiled, t["d_output"])
    if workload == "softmax_ce_grad":
        inputs = {n: t[n] for n in ("logits", "labels")}
        return gradients_case(F.cross_entropy, inputs, ["logits"], compiled)
    if workload in ("attention_grad", "attention_2048", "attention_2048_grad"):
        inputs = {n: t[n] for n in ("q", "k", "v")}
        attention = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)
        if workload == "attention_2048":
            return make_forward(attention, list(inputs.values()), compiled)
        return gradients_case(attention, inputs, list(inputs), compiled, t["d_output"])
    if workload == "embedding_grad":
        inputs = {n: t[n] for n in ("ids", "table")}
        return gradients_case(F.embedding, inputs, ["table"], compiled, t["d_output"])
    if workload in TRANSFORMS:
        return make_forward(TRANSFORMS[workload], [t["x"]], compiled)
    if workload in ("eigh_256", "svd_256"):
        return make_spectral(workload, t["a"], compiled)
    if workload == "lstm_grad":
        # Its own fused layer: weights are [4·width, width], the gates in the order of ours.
        state = (t["h0"][None], t["c0"][None])
        zero = torch.zeros_like(t["b"])

        def layer(x, w_x, w_h, b):
            return torch.lstm(x, state, [w_x.T, w_h.T, b, zero], True, 1, 0.0, True, False, False)[0]

        inputs = {n: t[n] for n in ("x", "w_x", "w_h", "b")}
        return gradients_case(layer, inputs, list(inputs), compiled, t["d_output"])
    if workload in ("cumsum_rows", "cumsum_columns"):
        axis = 1 if workload == "cumsum_rows" else 0
        return make_forward(lambda x: torch.cumsum(x, axis), [t["x"]], compiled)
    if workload in ("f32_row", "f32_rows"):
        return make_forward(torch.matmul, [t["x"], t["w"]], compiled)
    if workload == "f32_experts":
        return make_forward(experts, [t["x"], t["w"], t["i"]], compiled)
    if workload == "tiny_call":
        tiny = lambda x, a, b: torch.tanh(torch.addcmul(b, x, a))
        return make_forward(tiny, [t[n] for n in ("x", "a", "b")], compiled)
    raise KeyError(workload)


VARIANTS = {
    **{name: ["eager"] for name in TRANSFORMS},
    "cnn_train": ["eager", "compile", "eager_channels_last", "compile_channels_last"],
    "splat_step": [],
    "selective_scan_grad": ["eager", "chunks"],
    "gated_delta_grad": ["eager", "chunks"],
    "f32_experts": ["eager"],
    "sort": ["stable", "unstable"],
    "top_k": ["eager"],
    "rng_normal": ["eager"],
    "scan_fwd": ["eager", "chunks"],
    "scan_grad": ["eager", "chunks"],
    "mlp_hvp": ["eager", "double_backward", "compile"],
}


class TorchPeer:
    def version(self):
        return "PyTorch " + torch.__version__

    def variants(self, workload):
        known = VARIANTS.get(workload, ["eager", "compile"])
        return known if DEVICE == "cpu" else known + [v + GRAPH for v in known]

    def make(self, workload, variant, feeds, settings):
        precision = settings.get("precision", "f32")
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        torch.backends.cudnn.allow_tf32 = precision == "tf32"
        if variant.endswith(GRAPH):
            return Graphed(self.make(workload, variant.removesuffix(GRAPH), feeds, settings))
        policy = in_bf16 if precision == "bf16" else lambda loss: loss
        if workload == "mlp_train":
            return TrainCase(policy(mlp_loss), feeds, variant == "compile")
        if workload == "gpt_train":
            loss = gpt_loss_of(settings["layers"], settings["heads"])
            return TrainCase(policy(loss), feeds, variant == "compile")
        if workload == "cnn_train":
            return TrainCase(policy(cnn_loss), feeds, variant.startswith("compile"),
                             variant.endswith("channels_last"))
        t = {name: tensor(array) for name, array in feeds.items()}
        if workload in ("scan_fwd", "scan_grad"):
            return make_scan(workload, variant, t)
        if workload in ("selective_scan_grad", "gated_delta_grad"):
            return make_recurrent(workload, variant, t)
        if workload in ("sort", "top_k"):
            return make_ordered(workload, variant, t, settings)
        if workload == "rng_normal":
            return make_random(settings)
        if workload == "mlp_hvp":
            return make_hvp(variant, t)
        if workload == "hessian":
            return make_hessian(variant, t)
        return make_pure(workload, variant, t)


if __name__ == "__main__":
    torch.set_num_threads(os.cpu_count())
    serve(TorchPeer())
