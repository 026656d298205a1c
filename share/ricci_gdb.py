"""Shows Ricci's tensors, arrays, graphs and values in gdb.

    (gdb) source <prefix>/share/ricci/ricci_gdb.py
    (gdb) print x
    $1 = f32[2, 3] [[1, 2, 3], [4, 5, 6]]

Everything is read from memory: core files are shown as well, nothing is called and nothing is
computed. An array that was not looked at says what it waits for.
"""

import struct

import gdb
import gdb.printing

MOST_ELEMENTS = 64

# name, bytes, how struct reads it; the order is that of ricci::DType
DTYPES = [
    ("f64", 8, "d"), ("f32", 4, "f"), ("f16", 2, "e"), ("bf16", 2, None), ("i64", 8, "q"),
    ("i32", 4, "i"), ("i16", 2, "h"), ("i8", 1, "b"), ("u8", 1, "B"), ("u32", 4, "I"),
    ("bool", 1, "?"), ("c64", 8, "ff"), ("c128", 16, "dd"),
]
# Ops whose first field says which function they are.
FAMILIES = {"unary": "ricci_debug_unary", "binary": "ricci_debug_binary"}


def read(address, code):
    size = struct.calcsize("<" + code)
    return struct.unpack("<" + code, bytes(gdb.selected_inferior().read_memory(address, size)))


def at(address, type_name):
    """What lies at an address."""
    return gdb.Value(address).cast(gdb.lookup_type(type_name).pointer()).dereference()


def vector_at(address, type_name):
    """The elements of a std::vector, of any standard library here, that lies at an address."""
    begin, end = read(address, "QQ")
    size = gdb.lookup_type(type_name).sizeof
    return [at(begin + i * size, type_name) for i in range((end - begin) // size)]


def vector(value, type_name):
    return vector_at(int(value.address), type_name)


def string(value):
    names = [f.name for f in value.type.strip_typedefs().fields()]
    if "_M_dataplus" not in names:
        return str(value).strip('"')
    length = int(value["_M_string_length"])
    return value["_M_dataplus"]["_M_p"].string(length=length) if length else ""


def strings(value):
    return [string(s) for s in vector(value, "std::string")]


def pointer(value):
    """Where a std::shared_ptr points to: it begins with that."""
    return read(int(value.address), "Q")[0]


def listed_name(table, number):
    """An entry of a list of names that the library has for us."""
    try:
        names = int(gdb.parse_and_eval("(unsigned long)&" + table))
        (name,) = read(names + 8 * number, "Q")
        return gdb.Value(name).cast(gdb.lookup_type("char").pointer()).string()
    except gdb.error:
        return "an op"


def op_at(address):
    """The name an op has in text."""
    (kind,) = read(address, "H")
    name = listed_name("ricci_debug_ops", kind)
    if name in FAMILIES:
        (member,) = read(read(address + 8, "Q")[0], "B")
        return listed_name(FAMILIES[name], member)
    return name


def dim(value):
    text = str(int(value["constant_"]))
    terms = pointer(value["terms_"])
    if terms == 0:
        return text
    parts = []
    for term in vector_at(terms, "ricci::Dim::Term"):
        factor = int(term["coefficient"])
        symbols = "*".join(strings(term["symbols"]))
        parts.append(symbols if factor == 1 else "%d*%s" % (factor, symbols))
    return " + ".join(parts + ([text] if text != "0" else []))


def type_text(value):
    dims = [dim(d) for d in vector(value["dims"], "ricci::Dim")]
    return "%s[%s]" % (DTYPES[int(value["dtype"])][0], ", ".join(dims))


def number(n):
    return format(n, ".7g") if isinstance(n, float) else str(n)


def element(dtype, address):
    name, size, code = DTYPES[dtype]
    if name == "bf16":
        raw = bytes(gdb.selected_inferior().read_memory(address, size))
        return number(struct.unpack("<f", b"\0\0" + raw)[0])
    numbers = read(address, code)
    if len(numbers) == 2:
        return "(%s, %s)" % (number(numbers[0]), number(numbers[1]))
    return str(numbers[0]).lower() if name == "bool" else number(numbers[0])


def elements(dtype, dims, strides, first):
    """A type and its elements; strides count elements."""
    left = [MOST_ELEMENTS]

    def nested(address, axis):
        if axis == len(dims):
            left[0] -= 1
            return element(dtype, address)
        parts = []
        for i in range(dims[axis]):
            if left[0] <= 0:
                parts.append("...")
                break
            parts.append(nested(address + i * strides[axis] * DTYPES[dtype][1], axis + 1))
        return "[" + ", ".join(parts) + "]"

    shape = "%s[%s]" % (DTYPES[dtype][0], ", ".join(str(d) for d in dims))
    return shape + " " + nested(first, 0)


def tensor(value):
    dims = [int(d) for d in vector(value["dims_"], "long")]
    strides = [int(s) for s in vector(value["strides_"], "long")]
    return elements(int(value["type_"]["dtype"]), dims, strides, int(value["first_"]))


def row_major(value, first):
    """Elements of a type without symbols that lie one after the other."""
    dims = [int(d["constant_"]) for d in vector(value["dims"], "ricci::Dim")]
    strides = [1] * len(dims)
    for axis in reversed(range(len(dims) - 1)):
        strides[axis] = strides[axis + 1] * dims[axis + 1]
    return elements(int(value["dtype"]), dims, strides, first)


def array(value):
    node = pointer(value["node_"])
    if node == 0:
        return "no value"
    layout = int(gdb.parse_and_eval("(unsigned long)&ricci_debug_array_layout"))
    types, op, ready, values, trace, room = read(layout, "QQQQQQ")
    result = int(value["result_"])
    if read(node + ready, "?")[0]:
        tensors = vector_at(node + values, "ricci::Tensor")
        if result < len(tensors):
            return tensor(tensors[result])
    # A std::shared_ptr of them begins with a pointer.
    its_type = vector_at(read(node + types, "Q")[0], "ricci::Type")[result]
    text = type_text(its_type)
    if read(node + ready, "?")[0]:
        (first,) = read(node + room, "Q")
        return row_major(its_type, first) if first != 0 else text + " computed"
    if read(node + trace, "Q")[0] != 0:
        return text + " being traced"
    is_op = read(node + op + 24, "?")[0]  # std::optional has its flag behind the value
    return text + " waiting for " + (op_at(node + op) if is_op else "a call")


class Nodes:
    """The nodes of a graph with their names."""

    def __init__(self, graph):
        self.nodes = vector(graph["nodes_"], "ricci::Node")

    def op(self, k):
        return op_at(int(self.nodes[k]["op"].address))

    def type(self, k, result=0):
        return type_text(vector(self.nodes[k]["types"], "ricci::Type")[result])

    def name(self, k, result=0):
        if self.op(k) in ("input", "param"):  # whose first field is the name
            return string(at(read(int(self.nodes[k]["op"].address) + 8, "Q")[0], "std::string"))
        names = strings(self.nodes[k]["names"])
        return names[result] if result < len(names) else ""

    def listed(self, op):
        found = [k for k in range(len(self.nodes)) if self.op(k) == op]
        return ", ".join("%s: %s" % (self.name(k), self.type(k)) for k in found) or "none"


def graph(value):
    nodes = Nodes(value)
    outputs = []
    given = strings(value["output_names_"])
    for i, v in enumerate(vector(value["outputs_"], "ricci::ValueId")):
        node, result = int(v["node"]), int(v["result"])
        name = (given[i] if i < len(given) else "") or nodes.name(node, result) or "out%d" % i
        outputs.append("%s: %s" % (name, nodes.type(node, result)))
    return "graph @%s of %d nodes, inputs %s, params %s, outputs %s" % (
        string(value["name_"]), len(nodes.nodes), nodes.listed("input"), nodes.listed("param"),
        ", ".join(outputs) or "none")


def graph_value(value):
    if int(value["cell_"]) == 0:
        return "no value"
    cell = value["cell_"].dereference()
    (now,) = read(int(cell["stamp"].address), "Q")
    then = int(value["stamp_"])
    if now >> 32 != then >> 32:
        return "a value whose graph is gone"
    node, result = int(value["id_"]["node"]), int(value["id_"]["result"])
    begin, end = read(int(cell["moves"].address), "QQ")
    for k in range(then & 0xFFFFFFFF, (end - begin) // 24):
        (moves,) = read(begin + 24 * k, "Q")
        (node,) = read(moves + 4 * node, "I")
    owner = cell["graph"].dereference()
    nodes = Nodes(owner)
    name = nodes.name(node, result)
    return "%s : %s by %s in @%s" % (
        "%" + name if name else "a value", nodes.type(node, result), nodes.op(node),
        string(owner["name_"]))


class Printer:
    def __init__(self, value, text):
        self.value = value
        self.text = text

    def to_string(self):
        try:
            return self.text(self.value)
        except (gdb.error, gdb.MemoryError, IndexError, ValueError, struct.error) as fault:
            return "cannot be read: %s" % fault


def printers():
    collection = gdb.printing.RegexpCollectionPrettyPrinter("ricci")
    for name, text in (("Tensor", tensor), ("Array", array), ("Graph", graph),
                       ("Value", graph_value)):
        collection.add_printer(name, "^ricci::%s$" % name,
                               lambda value, text=text: Printer(value, text))
    return collection


gdb.printing.register_pretty_printer(gdb.current_objfile(), printers(), replace=True)
