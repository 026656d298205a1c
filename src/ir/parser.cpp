// The parser: tokens to graphs. Ops, attributes and defaults come from the op table.
#include <algorithm>
#include <charconv>
#include <map>

#include <fmt/format.h>

#include "ricci/ir/alias.h"
#include "ricci/ir/text.h"
#include "ricci/op/custom.h"
#include "ricci/op/leaf.h"
#include "ricci/op/table.h"
#include "ricci/support/text.h"

#include "ir/constant_text.h"
#include "ir/lexer.h"
#include "ir/random_keys.h"

namespace ricci {
namespace {

constexpr int Deepest = 64;  // nesting of bodies and lists
constexpr std::int64_t FormatVersion = 1;

class Parser {
 public:
  Parser(std::string_view text, const ParseOptions& options)
      : text_(text),
        lex_(text, options.file),
        registry_(options.registry != nullptr ? *options.registry : default_registry()) {}

  std::vector<Graph> file() {
    if (lex_.peek().is_word("ricci")) version();
    std::vector<Graph> graphs;
    while (lex_.peek().kind != TokenKind::End) {
      if (!lex_.peek().is_word("graph")) {
        lex_.fail(lex_.peek(), "expected 'graph'", "a file is a list of graph @name { … }");
      }
      lex_.next();
      expect('@');
      const Token name = lex_.next();
      if (name.kind != TokenKind::Word && name.kind != TokenKind::String) {
        lex_.fail(name, "a graph needs a name after '@'");
      }
      const std::string graph_name =
          name.kind == TokenKind::String ? lex_.unescape(name) : std::string(name.text);
      if (std::ranges::find(graphs, graph_name, &Graph::name) != graphs.end()) {
        lex_.fail(name, fmt::format("this file already has a graph @{}", graph_name),
                  "every graph of a file needs a name of its own");
      }
      graphs.push_back(block(graph_name, 0));
    }
    return graphs;
  }

 private:
  struct Statement {
    Token first;
    std::vector<Token> results;
    Token op;
    std::vector<ValueId> operands;
    std::vector<NamedAttr> attrs;
    std::vector<Body> bodies;
    std::vector<Type> types;
    std::optional<ConstantText> payload;
  };
  using Scope = std::map<std::string, ValueId, std::less<>>;
  // The names of the graph being read, and of those around it.
  struct Nested {
    Nested(Parser& p, const Scope& scope) : parser(p) { parser.scopes_.push_back(&scope); }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    ~Nested() { parser.scopes_.pop_back(); }
    Parser& parser;
  };

  void version() {
    lex_.next();
    const Token number = lex_.peek();
    const std::int64_t v = integer();
    if (v != FormatVersion) {
      lex_.fail(number, fmt::format("this file has format version {}, but only {} is known", v,
                                    FormatVersion));
    }
  }

  void expect(char c) {
    if (!lex_.peek().is(c)) {
      lex_.fail(lex_.peek(), lex_.peek().kind == TokenKind::End
                                 ? fmt::format("expected '{}', but the text ends here", c)
                                 : fmt::format("expected '{}' before {}", c,
                                               quote(lex_.peek().text.substr(0, 40))));
    }
    lex_.next();
  }

  bool accept(char c) {
    if (!lex_.peek().is(c)) return false;
    lex_.next();
    return true;
  }

  // `body_role` is empty for a graph of the file.
  Graph block(std::string name, int depth, std::string_view body_role = {}) {
    if (depth > Deepest) lex_.fail(lex_.peek(), "bodies are nested too deeply");
    const bool names_imply_roles = op::names_imply_roles(body_role);
    Graph graph(std::move(name), registry_);
    Scope scope;
    const Nested nested(*this, scope);
    expect('{');
    while (!lex_.peek().is_word("return")) {
      statement(graph, scope, depth, names_imply_roles);
    }
    lex_.next();
    std::vector<ValueId> outputs;
    while (lex_.peek().kind == TokenKind::Value) {
      outputs.push_back(use(graph, scope));
      if (!accept(',')) break;
    }
    graph.set_outputs(std::move(outputs));
    expect('}');
    return graph;
  }

  ValueId use(const Graph& graph, const Scope& scope) {
    const Token t = lex_.next();
    if (t.kind != TokenKind::Value) lex_.fail(t, "expected a value, %name");
    const auto it = scope.find(t.text);
    if (it == scope.end()) {
      std::vector<std::string> known;
      for (const auto& [name, unused] : scope) known.push_back(name);
      if (scopes_.size() > 1 && scopes_[scopes_.size() - 2]->contains(t.text)) {
        lex_.fail(t, fmt::format("%{} belongs to the graph around this body", t.text),
                  "a body sees only its own inputs; hand the value in as an operand");
      }
      const auto close = nearest(t.text, known);
      lex_.fail(t, fmt::format("%{} is not defined before this line", t.text),
                close ? fmt::format("did you mean %{}?", *close) : "");
    }
    const Node& node = graph.node(it->second.node);
    if (!node.wanted[it->second.result]) lex_.fail(t, "this result is not computed");
    return it->second;
  }

  void statement(Graph& graph, Scope& scope, int depth, bool names_imply_roles) {
    Statement s;
    s.first = lex_.peek();
    do {
      const Token t = lex_.next();
      if (t.kind != TokenKind::Value && !t.is_word("_")) {
        lex_.fail(t, t.kind == TokenKind::End ? "the text ends inside a graph"
                                              : "expected '%name = op …' or 'return'");
      }
      s.results.push_back(t);
    } while (accept(','));
    expect('=');
    s.op = lex_.next();
    if (s.op.kind != TokenKind::Word) lex_.fail(s.op, "expected the name of an op");
    const auto mnemonic = find_mnemonic(s.op.text);
    const AliasBuilder alias = mnemonic ? nullptr : find_alias(s.op.text);
    if (!mnemonic && alias == nullptr) unknown_op(s.op);
    if (mnemonic) positional(s, descriptor(mnemonic->kind));
    if (lex_.peek().is('(')) {
      lex_.fail(lex_.peek(), "operands are written without parentheses",
                fmt::format("write '{} %a, %b'", s.op.text));
    }
    if (lex_.peek().kind == TokenKind::Value) {
      do s.operands.push_back(use(graph, scope));
      while (accept(','));
    }
    if (accept('{')) attributes(s, depth);
    while (lex_.peek().kind == TokenKind::Word && !lex_.peek().is_word("return") &&
           !lex_.peek().is_word("_")) {
      const std::string role(lex_.next().text);
      s.bodies.push_back({role, std::make_shared<const Graph>(block(role, depth + 1, role))});
    }
    if (accept(':')) {
      do s.types.push_back(type());
      while (accept(','));
    }
    if (names_imply_roles && mnemonic) add_implied_role(s, *mnemonic);
    const std::vector<ValueId> made =
        mnemonic ? build(graph, s, *mnemonic) : build_alias(graph, s, alias);
    name_results(graph, scope, s, made);
  }

  // In the body of a derivative, `input "d_output"` has that role without saying so.
  void add_implied_role(Statement& s, const Mnemonic& mnemonic) {
    if (mnemonic.kind != kind_of<op::Input>) return;
    if (std::ranges::find(s.attrs, "role", &NamedAttr::name) != s.attrs.end()) return;
    const auto name = std::ranges::find(s.attrs, "name", &NamedAttr::name);
    const op::InputRole role = op::implied_role(*name->value.get<std::string>());
    if (role != op::InputRole{}) s.attrs.push_back({"role", to_attr(role)});
  }

  [[noreturn]] void unknown_op(const Token& op) {
    std::vector<std::string> known = all_mnemonics();
    for (std::string& a : all_aliases()) known.push_back(std::move(a));
    auto close = nearest(op.text, known);
    // Names other systems use, which spelling alone would not lead from.
    static const std::map<std::string_view, std::string_view> elsewhere = {
        {"sum", "reduce_sum"},
        {"mean", "reduce_mean"},
        {"cond", "if"},
        {"slice", "narrow"},
        {"select", "where"},
        {"broadcast", "expand"},
        {"permute", "transpose"},
        {"concatenate", "concat"},
        {"einsum", "dot_general"},
        {"softmax_cross_entropy", "softmax_cross_entropy_with_logits"}};
    if (const auto it = elsewhere.find(op.text); it != elsewhere.end()) close = it->second;
    lex_.fail(op, fmt::format("there is no op '{}'", op.text),
              close ? fmt::format("did you mean '{}'?", *close) : "'ricci doc' lists all ops");
  }

  [[noreturn]] void fail_count(const Statement& s, std::size_t made) {
    lex_.fail(s.first, fmt::format("'{}' gives {} result{}, but {} {} named", s.op.text, made,
                                   made == 1 ? "" : "s", s.results.size(),
                                   s.results.size() == 1 ? "is" : "are"));
  }

  void positional(Statement& s, const OpDescriptor& d) {
    for (const FieldInfo& field : d.fields) {
      if (field.presence != Presence::Positional) continue;
      if (field.default_value.get<std::shared_ptr<const Tensor>>() != nullptr) {
        s.payload = parse_constant_text(lex_);
        continue;
      }
      const Token t = lex_.next();
      if (t.kind != TokenKind::String) {
        lex_.fail(t, fmt::format("'{}' needs its {} in quotes here", d.info->name, field.name));
      }
      s.attrs.push_back({field.name, {lex_.unescape(t)}});
    }
  }

  void attributes(Statement& s, int depth) {
    while (!accept('}')) {
      const Token name = lex_.next();
      if (name.kind != TokenKind::Word) lex_.fail(name, "expected 'attribute = value' or '}'");
      if (std::ranges::find(s.attrs, name.text, &NamedAttr::name) != s.attrs.end()) {
        lex_.fail(name, fmt::format("the attribute '{}' is given twice", name.text));
      }
      expect('=');
      s.attrs.push_back({std::string(name.text), attribute(depth)});
      if (!accept(',') && !lex_.peek().is('}')) {
        lex_.fail(lex_.peek(), "expected ',' or '}' after an attribute");
      }
    }
  }

  AttrValue attribute(int depth) {
    if (depth > Deepest) lex_.fail(lex_.peek(), "lists are nested too deeply");
    const Token t = lex_.peek();
    if (t.kind == TokenKind::String) return {lex_.unescape(lex_.next())};
    if (t.is_word("true") || t.is_word("false")) return {lex_.next().text == "true"};
    if (t.is_word("inf") || t.is_word("nan")) return {real()};
    if (t.is_word("hex")) return {hex_bytes()};
    if (t.is('[')) return {attribute_list('[', ']', depth)};
    if (t.kind == TokenKind::Word) return enumerator_or_dim(depth);
    return number_or_dim();
  }

  std::vector<AttrValue> attribute_list(char open, char close, int depth) {
    expect(open);
    std::vector<AttrValue> list;
    while (!accept(close)) {
      list.push_back(attribute(depth + 1));
      if (!accept(',') && !lex_.peek().is(close)) {
        lex_.fail(lex_.peek(), fmt::format("expected ',' or '{}' in a list", close));
      }
    }
    return list;
  }

  Bytes hex_bytes() {
    lex_.next();
    const Token digits = lex_.next();
    if (digits.kind != TokenKind::String) lex_.fail(digits, "expected hex digits in quotes");
    auto bytes = from_hex(digits.text);
    if (!bytes) lex_.fail(digits, "hex needs an even number of hex digits");
    return {*std::move(bytes)};
  }

  AttrValue enumerator_or_dim(int depth) {
    const Token word = lex_.next();
    if (lex_.peek().is('(')) {
      return {Enumerator{std::string(word.text), attribute_list('(', ')', depth)}};
    }
    if (!lex_.peek().is('+') && !lex_.peek().is('-') && !lex_.peek().is('*')) {
      return {Enumerator{std::string(word.text), {}}};
    }
    return {dim_sum(dim_product(symbol(word)))};
  }

  AttrValue number_or_dim() {
    const Token first = lex_.peek();
    const bool negative = accept('-');
    const Token t = lex_.peek();
    if (t.is_word("inf") || t.is_word("nan")) {
      const Real r = real();
      return {negative ? Real(-r.value) : r};
    }
    if (t.kind == TokenKind::Number && t.text.find_first_of(".eE") != std::string_view::npos) {
      const Real r = real();
      return {negative ? Real(-r.value) : r};
    }
    if (t.kind != TokenKind::Number && t.kind != TokenKind::Word) {
      lex_.fail(first, "expected an attribute value");
    }
    const Dim d = dim_sum(dim_product(signed_factor(negative)));
    if (const auto n = d.try_value()) return {*n};
    return {d};
  }

  Real real() {
    const Token t = lex_.next();
    if (t.text == "inf") return std::numeric_limits<double>::infinity();
    if (t.text == "nan") {
      if (!accept('(')) return std::numeric_limits<double>::quiet_NaN();
      const Token bits = lex_.next();
      std::uint64_t payload = 0;
      const std::string_view digits = bits.text.substr(std::min<std::size_t>(2, bits.text.size()));
      const auto end = digits.data() + digits.size();
      const auto [stop, error] = std::from_chars(digits.data(), end, payload, 16);
      const double value = std::bit_cast<double>(payload);
      if (!bits.text.starts_with("0x") || error != std::errc() || stop != end || value == value) {
        lex_.fail(bits, "expected the bits of a NaN, 0x…");
      }
      expect(')');
      return value;
    }
    double value = 0;
    const auto end = t.text.data() + t.text.size();
    const auto [stop, error] = std::from_chars(t.text.data(), end, value);
    if (error != std::errc() || stop != end) {
      lex_.fail(t, fmt::format("'{}' is not a number f64 can hold", t.text));
    }
    return value;
  }

  std::int64_t integer(bool negative = false) {
    const Token t = lex_.next();
    std::uint64_t magnitude = 0;
    const auto end = t.text.data() + t.text.size();
    const auto [stop, error] = std::from_chars(t.text.data(), end, magnitude);
    const auto most =
        static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) + (negative ? 1 : 0);
    if (t.kind != TokenKind::Number) {
      lex_.fail(t, fmt::format("expected a number before {}", quote(t.text.substr(0, 40))));
    }
    if (error != std::errc() || stop != end || magnitude > most) {
      lex_.fail(t, fmt::format("'{}' is not a 64-bit integer", t.text.substr(0, 40)));
    }
    return static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
  }

  Dim symbol(const Token& word) {
    try {
      return Dim::symbol(std::string(word.text));
    } catch (const UserError& e) {
      lex_.fail(word, e.diagnostic().message, e.diagnostic().help);
    }
  }

  // A number or symbol, with the sign that was read before it.
  Dim signed_factor(bool negative) {
    if (lex_.peek().kind == TokenKind::Number) return integer(negative);
    const Dim d = dim_factor();
    return negative ? Dim(-1) * d : d;
  }

  Type type() {
    const Token name = lex_.next();
    const auto dtype =
        name.kind == TokenKind::Word ? dtype_from_name(name.text) : std::optional<DType>();
    if (!dtype) {
      lex_.fail(name, fmt::format("'{}' is not a dtype", name.text.substr(0, 40)),
                "types look like f32[2, 3]");
    }
    Type out{*dtype, {}};
    expect('[');
    while (!accept(']')) {
      const Token at = lex_.peek();
      out.dims.push_back(dim());
      if (out.dims.back().is_static() && out.dims.back().value() < 0) {
        lex_.fail(at, "a size cannot be negative");
      }
      if (!accept(',') && !lex_.peek().is(']')) {
        lex_.fail(lex_.peek(), "expected ',' or ']' in a shape");
      }
    }
    return out;
  }

  Dim dim() {
    const bool negative = accept('-');
    return dim_sum(dim_product(signed_factor(negative)));
  }

  Dim dim_factor() {
    const Token t = lex_.peek();
    if (t.kind == TokenKind::Word) return symbol(lex_.next());
    return integer();
  }

  Dim dim_product(Dim d) {
    while (accept('*')) d = checked(d, [&](const Dim& a) { return a * dim_factor(); });
    return d;
  }

  Dim dim_sum(Dim d) {
    while (lex_.peek().is('+') || lex_.peek().is('-')) {
      const bool minus = lex_.next().is('-');
      const Dim term = dim_product(dim_factor());
      d = checked(d, [&](const Dim& a) { return minus ? a - term : a + term; });
    }
    return d;
  }

  template <class F>
  Dim checked(const Dim& d, F&& f) {
    const Token at = lex_.peek();
    try {
      return f(d);
    } catch (const UserError& e) {
      if (e.code() == ErrorCode::Parse) throw;
      lex_.fail(at, "this size does not fit in 64 bits");
    }
  }

  // Runs a step that builds; what it reports gets this statement's place.
  template <class F>
  auto located(const Token& at, F&& f) {
    try {
      return f();
    } catch (const Rejection& r) {
      throw UserError(Diagnostic{r.code, r.detail, r.message, lex_.place(at), {}, r.help});
    } catch (const UserError& e) {
      Diagnostic d = e.diagnostic();
      if (d.where.known() && !d.where.text.empty()) throw;
      d.where = lex_.place(at);
      throw UserError(std::move(d));
    }
  }

  std::vector<ValueId> build(Graph& graph, Statement& s, const Mnemonic& mnemonic) {
    const OpDescriptor& d = descriptor(mnemonic.kind);
    return located(s.op, [&] {
      if (mnemonic.family_member) {
        s.attrs.push_back({"kind", {Enumerator{*mnemonic.family_member, {}}}});
      }
      for (const FieldInfo& field : d.fields) {
        if (field.default_value.get<Type>() != nullptr) take_declared_type(s, field.name);
      }
      if (s.payload) {
        if (s.types.size() != 1) lex_.fail(s.op, "a constant needs its type: ': f32[2, 3]'");
        s.attrs.push_back({"value", to_attr(read_constant(lex_, *s.payload, s.types[0]))});
      }
      if (ricci::has(d.info->traits, Trait::Random) &&
          std::ranges::find(s.attrs, "key", &NamedAttr::name) == s.attrs.end()) {
        s.attrs.push_back({"key", {fresh_key()}});
      }
      NodeSpec spec{.op = d.make(s.attrs),
                    .operands = s.operands,
                    .bodies = std::move(s.bodies),
                    .wanted = {},
                    .names = {},
                    .provenance = {.label = {}, .where = lex_.position(s.first), .origin = {}}};
      for (const Token& r : s.results) spec.wanted.push_back(!r.is_word("_"));
      const NodeId id = graph.add(std::move(spec));
      std::vector<ValueId> made;
      for (std::uint32_t r = 0; r < graph.node(id).types.size(); ++r) made.push_back({id, r});
      const Node& node = graph.node(id);
      const std::size_t least = std::min(made.size(), node.optional_from);
      if (s.results.size() > made.size() ||
          s.results.size() < std::max<std::size_t>(least, made.empty() ? 0 : 1)) {
        // An op without results is written `_ = …`.
        if (!(made.empty() && s.results.size() == 1 && s.results[0].is_word("_"))) {
          fail_count(s, made.size());
        }
      }
      return made;
    });
  }

  void take_declared_type(Statement& s, const std::string& field) {
    if (s.types.size() != 1) {
      lex_.fail(s.op, fmt::format("'{}' needs its type: ': f32[2, 3]'", s.op.text));
    }
    s.attrs.push_back({field, {s.types[0]}});
  }

  std::vector<ValueId> build_alias(Graph& graph, Statement& s, AliasBuilder alias) {
    return located(s.op, [&] {
      ProvenanceScope scope(graph, {.label = {}, .where = lex_.position(s.first), .origin = {}});
      AliasCall call{graph, {}, s.attrs, std::move(s.bodies)};
      for (const ValueId v : s.operands) call.operands.push_back(graph.value(v));
      std::vector<ValueId> made;
      for (const Value& v : alias(call)) made.push_back(v.id());
      if (made.size() != s.results.size()) {
        fail_count(s, made.size());
      }
      return made;
    });
  }

  void name_results(Graph& graph, Scope& scope, const Statement& s,
                    const std::vector<ValueId>& made) {
    for (std::size_t r = 0; r < s.results.size() && r < made.size(); ++r) {
      if (r < s.types.size()) check_declared(s, s.types[r], graph.type(made[r]));
      if (s.results[r].is_word("_")) continue;
      const std::string name(s.results[r].text);
      if (!scope.emplace(name, made[r]).second) {
        lex_.fail(s.results[r], fmt::format("%{} is already defined", name),
                  "every value needs a name of its own");
      }
      // Names that are only digits are numbers the printer gives; they are not kept.
      if (is_identifier(name)) graph.set_value_name(made[r], name);
    }
    if (s.types.size() > s.results.size()) {
      lex_.fail(s.first,
                fmt::format("{} types are given for {} results", s.types.size(), s.results.size()));
    }
  }

  void check_declared(const Statement& s, const Type& declared, const Type& inferred) {
    if (declared == inferred) return;
    const bool one_element = declared.dtype == inferred.dtype && inferred.dims.empty() &&
                             declared.dims.size() == 1 && declared.dims[0].is(1);
    if (one_element) return;
    throw UserError(Diagnostic{ErrorCode::Shape,
                               "declared",
                               fmt::format("'{}' gives {}, but {} is declared", s.op.text,
                                           inferred.to_string(), declared.to_string()),
                               lex_.place(s.op),
                               {},
                               "leave the type out and it is inferred"});
  }

  // Keys for random ops that give none: above every key the file gives, one each, bodies included.
  std::int64_t fresh_key() {
    if (next_key_ == 0) {
      next_key_ = 1;
      Lexer scan(text_, {});
      for (Token t = scan.next(); t.kind != TokenKind::End; t = scan.next()) {
        if (!t.is_word("key") || !scan.peek().is('=')) continue;
        scan.next();
        std::int64_t key = 0;
        const std::string_view digits = scan.peek().text;
        std::from_chars(digits.data(), digits.data() + digits.size(), key);
        next_key_ = next_key_after(next_key_, key);
      }
    }
    return take_key(next_key_);
  }

  std::string_view text_;
  Lexer lex_;
  const Registry& registry_;
  std::vector<const Scope*> scopes_;
  std::int64_t next_key_ = 0;
};

}  // namespace

std::vector<Graph> parse(std::string_view text, const ParseOptions& options) {
  return Parser(text, options).file();
}

Graph parse_graph(std::string_view text, const ParseOptions& options) {
  std::vector<Graph> graphs = parse(text, options);
  if (graphs.empty()) {
    throw UserError(ErrorCode::Parse, fmt::format("'{}' holds no graph", options.file),
                    "a file is a list of graph @name { … }");
  }
  return std::move(graphs.front());
}

}  // namespace ricci
