"""Collects cases: a Ricci program, its inputs, and what another system makes of them."""
import pathlib
import zipfile
import io

import numpy as np

DTYPES = {"float64": "f64", "float32": "f32", "float16": "f16", "int64": "i64", "int32": "i32",
          "int16": "i16", "int8": "i8", "uint8": "u8", "uint32": "u32", "bool": "bool",
          "complex64": "c64", "complex128": "c128"}


def type_text(array):
    dims = ", ".join(str(d) for d in array.shape)
    return f"{DTYPES[array.dtype.name]}[{dims}]"


class Family:
    """One pair of files: programs in <name>.ric, values in <name>.npz."""

    def __init__(self, name):
        self.name = name
        self.graphs = []
        self.arrays = {}

    def case(self, name, body, inputs, outputs, returns=None):
        """`body` is Ricci text that defines the returned values from inputs named like the keys."""
        inputs = {k: np.asarray(v) for k, v in inputs.items()}
        if not isinstance(outputs, (list, tuple)):
            outputs = [outputs]
        self.graph(name, body, inputs, returns or "%y")
        for i, value in enumerate(outputs):
            self.arrays[f"{name}.out.{i}"] = np.asarray(value)

    def graph(self, name, body, inputs, returns):
        lines = [f"graph @{name} {{"]
        lines += [f'  %{k} = input "{k}" : {type_text(v)}' for k, v in inputs.items()]
        lines += ["  " + line.strip() for line in body.strip().splitlines()]
        lines += ["  return " + returns, "}"]
        self.graphs.append("\n".join(lines))
        for key, value in inputs.items():
            self.arrays[f"{name}.in.{key}"] = value

    def write(self, folder):
        folder = pathlib.Path(folder)
        text = "// Made by tests/reference/make_reference.py; do not edit.\n\n" + "\n\n".join(self.graphs)
        (folder / f"{self.name}.ric").write_text(text + "\n")
        # Fixed dates, so that the same values give the same bytes.
        with zipfile.ZipFile(folder / f"{self.name}.npz", "w", zipfile.ZIP_DEFLATED) as out:
            for key, value in self.arrays.items():
                data = io.BytesIO()
                np.lib.format.write_array(data, np.ascontiguousarray(value).reshape(value.shape))
                out.writestr(zipfile.ZipInfo(key + ".npy", (1980, 1, 1, 0, 0, 0)), data.getvalue(),
                             compress_type=zipfile.ZIP_DEFLATED)
        return len(self.graphs)
