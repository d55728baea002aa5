#include "lm/generate/grammar/grammar.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "engine/base/error.h"
#include "lm/generate/grammar/automaton.h"
#include "lm/generate/grammar/json_schema.h"
#include "lm/generate/grammar/token_trie.h"

namespace caldera {
namespace {

// Beyond so many numbered sets, or masks, what was learnt is forgotten: about 16 and 20 MB.
constexpr std::size_t kMostSets = 16384;
constexpr std::size_t kMostMasks = 1024;

}  // namespace

struct GrammarVocabulary::Data {
  grammar::TokenTrie trie;
  std::vector<std::int32_t> end_ids;
};

GrammarVocabulary::GrammarVocabulary(const std::vector<std::string>& token_bytes,
                                     std::vector<std::int32_t> end_ids)
    : data_(std::make_shared<Data>(Data{grammar::TokenTrie(token_bytes), std::move(end_ids)})) {}

/// What the followers of one grammar share.
struct Grammar::State {
  using Mask = std::vector<std::uint64_t>;

  State(grammar::Rules rules, grammar::RuleId root, GrammarVocabulary words)
      : automaton(std::move(rules), root), vocabulary(std::move(words)) {}

  std::mutex mutex;
  grammar::Automaton automaton;
  GrammarVocabulary vocabulary;
  std::unordered_map<grammar::Automaton::Set, Mask> masks;
  std::uint64_t epoch = 0;  // changes where sets get new numbers

  /// Where a token leads to; kDead where it may not come.
  grammar::Automaton::Set follow(grammar::Automaton::Set set, std::int32_t id) {
    const std::string& bytes = vocabulary.data().trie.bytes(id);
    if (bytes.empty()) return grammar::Automaton::kDead;
    for (const char byte : bytes) {
      set = automaton.next(set, static_cast<std::uint8_t>(byte));
      if (set == grammar::Automaton::kDead) return set;
    }
    return set;
  }

  const Mask& mask_of(grammar::Automaton::Set set) {
    const auto found = masks.find(set);
    if (found != masks.end()) return found->second;
    if (masks.size() >= kMostMasks) masks.clear();
    return masks[set] = compute_mask(set);
  }

  Mask compute_mask(grammar::Automaton::Set set) {
    const grammar::TokenTrie& trie = vocabulary.data().trie;
    Mask mask((trie.vocabulary() + 63) / 64);
    const auto add = [&](std::int32_t id) {
      mask[static_cast<std::size_t>(id) / 64] |= std::uint64_t{1} << (id % 64);
    };
    // sets[d]: where the first d bytes of the node's text lead to.
    std::vector<grammar::Automaton::Set> sets(trie.max_depth() + 1);
    sets[0] = set;
    const std::vector<grammar::TokenTrie::Node>& nodes = trie.nodes();
    for (std::size_t i = 0; i < nodes.size();) {
      const grammar::TokenTrie::Node& node = nodes[i];
      const grammar::Automaton::Set to = automaton.next(sets[node.depth], node.byte);
      if (to == grammar::Automaton::kDead) {
        i = node.end;
        continue;
      }
      sets[node.depth + 1U] = to;
      for (const std::int32_t id : trie.tokens(node)) add(id);
      ++i;
    }
    if (automaton.accepts(set)) {
      for (const std::int32_t id : vocabulary.data().end_ids)
        if (static_cast<std::size_t>(id) < trie.vocabulary()) add(id);
    }
    return mask;
  }
};

/// One text.
class Grammar::Follower : public TokenConstraint {
 public:
  explicit Follower(std::shared_ptr<State> state) : state_(std::move(state)) {}

  TokenSet allowed() override {
    const std::lock_guard lock(state_->mutex);
    refresh();
    mask_ = ended_ ? end_mask() : state_->mask_of(set_);
    if (std::all_of(mask_.begin(), mask_.end(), [](std::uint64_t word) { return word == 0; })) {
      throw ValueError("grammar: no token of the vocabulary can come next; it lacks tokens for single bytes");
    }
    return mask_;
  }

  void accept(std::int32_t id) override {
    const std::lock_guard lock(state_->mutex);
    refresh();
    const auto& data = state_->vocabulary.data();
    if (id < 0 || static_cast<std::size_t>(id) >= data.trie.vocabulary()) refuse();
    const bool ends = std::find(data.end_ids.begin(), data.end_ids.end(), id) != data.end_ids.end();
    if (ends && (ended_ || state_->automaton.accepts(set_))) {
      ended_ = true;
      return;
    }
    const grammar::Automaton::Set to = ended_ ? grammar::Automaton::kDead : state_->follow(set_, id);
    if (to == grammar::Automaton::kDead) refuse();
    set_ = to;
    ids_.push_back(id);
  }

  std::unique_ptr<TokenConstraint> clone() const override { return std::make_unique<Follower>(*this); }

 private:
  [[noreturn]] static void refuse() { throw ValueError("grammar: the token is not allowed here"); }

  State::Mask end_mask() const {
    State::Mask mask((state_->vocabulary.data().trie.vocabulary() + 63) / 64);
    for (const std::int32_t id : state_->vocabulary.data().end_ids)
      if (static_cast<std::size_t>(id) / 64 < mask.size())
        mask[static_cast<std::size_t>(id) / 64] |= std::uint64_t{1} << (id % 64);
    return mask;
  }

  // Keeps what is learnt within bounds, and finds the text's place again where sets got new numbers.
  void refresh() {
    if (state_->automaton.size() > kMostSets) {
      state_->automaton.clear();
      state_->masks.clear();
      ++state_->epoch;
    }
    if (epoch_ == state_->epoch) return;
    epoch_ = state_->epoch;
    set_ = state_->automaton.start();
    for (const std::int32_t id : ids_) set_ = state_->follow(set_, id);
  }

  std::shared_ptr<State> state_;
  std::uint64_t epoch_ = ~std::uint64_t{0};  // none: the place is found at the first use
  grammar::Automaton::Set set_ = 0;
  bool ended_ = false;
  std::vector<std::int32_t> ids_;
  State::Mask mask_;
};

Grammar::Grammar(const std::vector<std::vector<GrammarPart>>& alternatives, GrammarVocabulary vocabulary)
    : Grammar(std::vector<GrammarList>{{{}, alternatives, {}, {}}}, std::move(vocabulary)) {}

Grammar::Grammar(const std::vector<GrammarList>& lists, GrammarVocabulary vocabulary) {
  grammar::Rules rules;
  const grammar::RuleId root = grammar::add_lists(rules, lists);
  rules.prune(root);
  state_ = std::make_shared<State>(std::move(rules), root, std::move(vocabulary));
}

Grammar Grammar::json_schema(std::string_view schema, const GrammarVocabulary& vocabulary) {
  return Grammar({{{GrammarPart::Kind::json_schema, std::string(schema)}}}, vocabulary);
}

Grammar Grammar::pattern(std::string_view expression, const GrammarVocabulary& vocabulary) {
  return Grammar({{{GrammarPart::Kind::pattern, std::string(expression)}}}, vocabulary);
}

Grammar Grammar::gbnf(std::string_view text, const GrammarVocabulary& vocabulary) {
  return Grammar({{{GrammarPart::Kind::gbnf, std::string(text)}}}, vocabulary);
}

Grammar Grammar::json_object(const GrammarVocabulary& vocabulary) {
  return Grammar({{{GrammarPart::Kind::json_object, {}}}}, vocabulary);
}

std::unique_ptr<TokenConstraint> Grammar::constraint() const { return std::make_unique<Follower>(state_); }

}  // namespace caldera
