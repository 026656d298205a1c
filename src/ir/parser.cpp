// The parser: tokens to graphs. Ops, attributes and defaults come from the op table.
#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <unordered_set>

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
#include "ir/value_text.h"
#include "support/float_environment.h"

namespace ricci {
namespace {

constexpr std::int64_t FormatVersion = 1;

class Parser {
 public:
  Parser(std::string_view text, const ParseOptions& options)
      : text_(text),
        options_(options),
        lex_(text, options.file, options.limits),
        values_(lex_, options.limits),
        registry_(options.registry != nullptr ? *options.registry : default_registry()) {}

  std::vector<Graph> file() {
    if (lex_.peek().is_word("ricci")) version();
    std::vector<Graph> graphs;
    std::unordered_set<std::string> names;
    while (lex_.peek().kind != TokenKind::End) {
      const auto graph = [&] {
        if (!lex_.peek().is_word("graph")) {
          lex_.fail(lex_.peek(), "expected 'graph'", "a file is a list of graph @name { … }");
        }
        lex_.check_limit(lex_.next(), "graphs", limits().graphs, graphs.size() + 1,
                         "the file has {} graphs or more");
        lex_.expect('@');
        const Token at = lex_.next();
        std::string name = graph_name(at);
        if (!names.insert(name).second) {
          lex_.fail(at, fmt::format("this file already has a graph @{}", shortened(name)),
                    "every graph of a file needs a name of its own");
        }
        try {
          graphs.push_back(block(std::move(name), 0));
        } catch (const KnownFault&) {  // it was read to its end
        }
      };
      const Token first = lex_.peek();
      if (!succeeds(graph)) skip_to_graph(first);
    }
    if (!faults_.empty()) throw UserError(std::move(faults_));
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
    bool is_read = false;  // to its end
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

  // Something that cannot be read because of a fault that is known already.
  struct KnownFault {};

  [[nodiscard]] const Limits& limits() const { return options_.limits; }

  // Keeps the fault of a step that fails, as long as there is room for more of them.
  template <class F>
  bool succeeds(F&& step) {
    try {
      step();
      return true;
    } catch (const KnownFault&) {
      return false;
    } catch (const UserError& e) {
      if (options_.most_faults <= 1 || e.code() == ErrorCode::Stopped) throw;
      faults_.insert(faults_.end(), e.diagnostics().begin(), e.diagnostics().end());
    }
    if (faults_.size() >= options_.most_faults) throw UserError(std::move(faults_));
    return false;
  }

  // What the lexer cannot read ends the search.
  void skip_token() {
    try {
      lex_.next();
    } catch (const UserError& e) {
      faults_.insert(faults_.end(), e.diagnostics().begin(), e.diagnostics().end());
      throw UserError(std::move(faults_));
    }
  }

  void skip_to_graph(const Token& failed) {
    if (lex_.peek().text.data() == failed.text.data()) skip_token();
    while (lex_.peek().kind != TokenKind::End && !lex_.peek().is_word("graph")) skip_token();
  }

  // To what may begin a statement, or end the block, on a line of its own. Bodies that were entered
  // are read to their end: braces open here are those of attributes.
  void skip_statement(std::uint32_t line) {
    while (in_attributes_ && lex_.peek().kind != TokenKind::End) {
      in_attributes_ = !lex_.peek().is('}');
      skip_token();
    }
    in_attributes_ = false;
    const auto begins = [&](const Token& t) {
      return t.kind == TokenKind::End || t.is('}') || t.is_word("graph") || t.is_word("return") ||
             (t.line > line && (t.kind == TokenKind::Value || t.is_word("_")));
    };
    int depth = 0;  // of bodies that were never entered
    while (depth != 0 || !begins(lex_.peek())) {
      if (lex_.peek().kind == TokenKind::End) return;
      if (lex_.peek().is('{')) ++depth;
      if (lex_.peek().is('}')) --depth;
      line = lex_.peek().line;
      skip_token();
    }
  }

  // Reads a statement; when it has a fault, what it would have defined is known to be missing.
  void statement_or_skip(Graph& graph, Scope& scope, int depth, bool names_imply_roles) {
    Statement s;
    s.first = lex_.peek();
    if (succeeds([&] { statement(s, graph, scope, depth, names_imply_roles); })) return;
    for (const Token& r : s.results) {
      if (r.kind == TokenKind::Value) scope.try_emplace(std::string(r.text), ValueId{});
    }
    if (!s.is_read) skip_statement(s.first.line);
  }

  std::string graph_name(const Token& at) {
    if (at.kind == TokenKind::Word) return std::string(at.text);
    if (at.kind != TokenKind::String) lex_.fail(at, "a graph needs a name after '@'");
    return name_in_quotes(at);
  }

  std::string name_in_quotes(const Token& at) {
    std::string name = lex_.unescape(at);
    lex_.check_limit(at, "name_bytes", limits().name_bytes, name.size(), "this name has {} bytes");
    return name;
  }

  void version() {
    lex_.next();
    const Token number = lex_.peek();
    const std::int64_t v = values_.integer();
    if (v != FormatVersion) {
      lex_.fail(number, fmt::format("this file has format version {}, but only {} is known", v,
                                    FormatVersion));
    }
  }

  // `body_role` is empty for a graph of the file.
  Graph block(std::string name, int depth, std::string_view body_role = {}) {
    if (depth > MostNesting) {
      lex_.fail(lex_.peek(), "bodies are nested too deeply",
                fmt::format("at most {} levels", MostNesting));
    }
    const bool names_imply_roles = op::names_imply_roles(body_role);
    Graph graph(std::move(name), registry_);
    Scope scope;
    const Nested nested(*this, scope);
    const std::size_t faults = faults_.size();
    lex_.expect('{');
    while (!lex_.peek().is_word("return")) {
      if (lex_.peek().is('}')) {
        (void)succeeds([&] { lex_.fail(lex_.peek(), "expected '%name = op …' or 'return'"); });
        break;
      }
      if (!faults_.empty() &&
          (lex_.peek().is_word("graph") || lex_.peek().kind == TokenKind::End)) {
        break;
      }
      statement_or_skip(graph, scope, depth, names_imply_roles);
    }
    if (lex_.peek().is_word("return")) {
      const std::uint32_t line = lex_.next().line;
      if (!succeeds([&] { returned(graph, scope); })) skip_statement(line);
    }
    if (faults_.size() != faults) {
      (void)lex_.accept('}');
      throw KnownFault{};
    }
    lex_.expect('}');
    return graph;
  }

  // Values between commas, if there are any.
  std::vector<ValueId> used_values(const Graph& graph, const Scope& scope) {
    std::vector<ValueId> out;
    if (lex_.peek().kind != TokenKind::Value) return out;
    do {
      check_values(out.size() + 1);
      out.push_back(use(graph, scope));
    } while (lex_.accept(','));
    return out;
  }

  void check_values(std::size_t count) {
    lex_.check_limit(lex_.peek(), "values", limits().values, count,
                     "this list has {} values or more");
  }

  ValueId use(const Graph& graph, const Scope& scope) {
    const Token t = lex_.next();
    if (t.kind != TokenKind::Value) lex_.fail(t, "expected a value, %name");
    const auto it = scope.find(t.text);
    if (it != scope.end() && it->second == ValueId{}) throw KnownFault{};
    if (it == scope.end()) {
      std::vector<std::string> known;
      for (const auto& [name, unused] : scope) known.push_back(name);
      if (scopes_.size() > 1 && scopes_[scopes_.size() - 2]->contains(t.text)) {
        lex_.fail(t, fmt::format("%{} belongs to the graph around this body", shortened(t.text)),
                  "a body sees only its own inputs; hand the value in as an operand");
      }
      if (!told_.emplace(&scope, t.text).second) throw KnownFault{};
      const auto close = nearest(t.text, known);
      lex_.fail(t, fmt::format("%{} is not defined before this line", shortened(t.text)),
                close ? fmt::format("did you mean %{}?", *close) : "");
    }
    const Node& node = graph.node(it->second.node);
    if (!node.wanted[it->second.result]) lex_.fail(t, "this result is not computed");
    return it->second;
  }

  void statement(Statement& s, Graph& graph, Scope& scope, int depth, bool names_imply_roles) {
    lex_.check_limit(s.first, "nodes", limits().nodes, ++statements_,
                     "the file has {} nodes or more");
    do {
      check_values(s.results.size() + 1);
      const Token t = lex_.next();
      if (t.kind != TokenKind::Value && !t.is_word("_")) {
        lex_.fail(t, t.kind == TokenKind::End ? "the text ends inside a graph"
                                              : "expected '%name = op …' or 'return'");
      }
      s.results.push_back(t);
    } while (lex_.accept(','));
    lex_.expect('=');
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
    s.operands = used_values(graph, scope);
    in_attributes_ = lex_.accept('{');
    if (in_attributes_) attributes(s);
    in_attributes_ = false;
    while (lex_.peek().kind == TokenKind::Word && !lex_.peek().is_word("return") &&
           !lex_.peek().is_word("_")) {
      const std::string role(lex_.next().text);
      s.bodies.push_back({role, std::make_shared<const Graph>(block(role, depth + 1, role))});
    }
    if (lex_.accept(':')) {
      do {
        check_values(s.types.size() + 1);
        s.types.push_back(values_.type());
      } while (lex_.accept(','));
    }
    s.is_read = true;
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
    lex_.fail(op, fmt::format("there is no op '{}'", shortened(op.text)),
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
      s.attrs.push_back({field.name, {name_in_quotes(t)}});
    }
  }

  void attributes(Statement& s) {
    lex_.list('}', "after an attribute", [&] {
      const Token name = lex_.next();
      if (name.kind != TokenKind::Word) lex_.fail(name, "expected 'attribute = value' or '}'");
      lex_.check_limit(name, "attributes", limits().attributes, s.attrs.size() + 1,
                       "this op has {} attributes or more");
      if (std::ranges::find(s.attrs, name.text, &NamedAttr::name) != s.attrs.end()) {
        lex_.fail(name, fmt::format("the attribute '{}' is given twice", shortened(name.text)));
      }
      lex_.expect('=');
      s.attrs.push_back({std::string(name.text), values_.attribute()});
    });
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

  // `return %a, %b as "name"`
  void returned(Graph& graph, const Scope& scope) {
    std::vector<ValueId> outputs;
    std::vector<Token> names;
    if (lex_.peek().kind == TokenKind::Value) {
      do {
        check_values(outputs.size() + 1);
        outputs.push_back(use(graph, scope));
        names.emplace_back();
        if (!lex_.peek().is_word("as")) continue;
        lex_.next();
        names.back() = lex_.next();
        if (names.back().kind != TokenKind::String) {
          lex_.fail(names.back(), "an output's name is written in quotes", "%y as \"prediction\"");
        }
      } while (lex_.accept(','));
    }
    graph.set_outputs(std::move(outputs));
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i].kind != TokenKind::String) continue;
      located(names[i], [&] { graph.set_output_name(i, name_in_quotes(names[i])); });
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
        s.attrs.push_back({"value", to_attr(read_constant(*s.payload, s.types[0]))});
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
        lex_.fail(s.results[r], fmt::format("%{} is already defined", shortened(name)),
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
      Lexer scan(text_, options_.file, limits());
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
  const ParseOptions& options_;
  Lexer lex_;
  ValueText values_;
  const Registry& registry_;
  std::vector<const Scope*> scopes_;
  std::int64_t next_key_ = 0;
  std::size_t statements_ = 0;
  std::vector<Diagnostic> faults_;
  bool in_attributes_ = false;
  std::set<std::pair<const Scope*, std::string_view>> told_;  // names that are not defined
};

}  // namespace

std::vector<Graph> parse(std::string_view text, const ParseOptions& options) {
  const DefaultFloatEnvironment floats;
  return Parser(text, options).file();
}

Graph parse_graph(std::string_view text, const ParseOptions& options) {
  const DefaultFloatEnvironment floats;
  std::vector<Graph> graphs = parse(text, options);
  if (graphs.empty()) {
    throw UserError(ErrorCode::Parse, fmt::format("'{}' holds no graph", options.file),
                    "a file is a list of graph @name { … }");
  }
  return std::move(graphs.front());
}

}  // namespace ricci
