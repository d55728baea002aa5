#include "lm/generate/cache/page_store.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace caldera {

/// A page of every group, for page_positions positions of a text.
struct PageStore::Block {
  explicit Block(std::size_t groups) : pages(groups, 0), users(groups, 0), idle_since(groups, 0) {}

  Block* parent = nullptr;  // in the tree: null of the root alone
  bool in_tree = false;
  std::vector<std::int32_t> ids;  // in the tree: what it holds
  std::int64_t texts = 0;         // that have the block; of a root: that are of its tree
  // Of each group: its page (0: none), texts that need that, and since when none does.
  std::vector<std::int64_t> pages, users;
  std::vector<std::uint64_t> idle_since;
  std::map<std::vector<std::int32_t>, std::unique_ptr<Block>> children;
};

PageStore::Text::Text() = default;
PageStore::Text::~Text() = default;
PageStore::Text::Text(Text&&) noexcept = default;
PageStore::Text& PageStore::Text::operator=(Text&&) noexcept = default;

PageStore::PageStore(std::vector<Group> groups, std::int64_t page_positions, bool reuse)
    : groups_(std::move(groups)), page_positions_(page_positions), reuse_(reuse), idle_(groups_.size()) {
  for (const Group& g : groups_) {
    std::vector<std::int64_t>& pages = free_.emplace_back();
    for (std::int64_t page = g.pages - 1; page > 0; --page) pages.push_back(page);  // low numbers first
  }
}

PageStore::~PageStore() = default;

std::int64_t PageStore::first_needed(std::size_t group, std::int64_t end) const {
  const auto& window = groups_[group].window;
  // The query at position `end` looks at end - window + 1 and later ones.
  return window ? std::max<std::int64_t>(end - *window + 1, 0) / page_positions_ : 0;
}

bool PageStore::has_window_pages(const std::vector<Block*>& chain, std::size_t group) const {
  const auto count = static_cast<std::int64_t>(chain.size());
  for (std::int64_t i = first_needed(group, count * page_positions_); i < count; ++i)
    if (chain[static_cast<std::size_t>(i)]->pages[group] == 0) return false;
  return true;
}

PageStore::Text PageStore::begin(const std::string& kind, std::span<const std::int32_t> ids,
                                 std::int64_t& reused) {
  Text text;
  text.kept_from_.assign(groups_.size(), 0);
  reused = 0;
  if (!reuse_) return text;
  std::unique_ptr<Block>& root = roots_[{era_, kind}];
  if (root == nullptr) {
    root = std::make_unique<Block>(groups_.size());
    root->in_tree = true;
  }
  ++root->texts;
  text.root_ = text.tip_ = root.get();
  reused = advance(text, ids);
  return text;
}

/// The text's full blocks, and those of the tree that go on as `ids` do.
std::vector<PageStore::Block*> PageStore::known_chain(const Text& text,
                                                      std::span<const std::int32_t> ids) const {
  const auto step = static_cast<std::size_t>(page_positions_);
  std::vector<Block*> chain(text.blocks_.begin(), text.blocks_.begin() + text.full_);
  const std::size_t own = chain.size();
  const Block* at = text.tip_;
  for (std::size_t begin = own * step; begin + step < ids.size(); begin += step) {
    const auto next = at->children.find({ids.begin() + static_cast<std::ptrdiff_t>(begin),
                                         ids.begin() + static_cast<std::ptrdiff_t>(begin + step)});
    if (next == at->children.end()) break;
    at = next->second.get();
    chain.push_back(next->second.get());
  }
  const auto complete = [&] {
    for (std::size_t g = 0; g < groups_.size(); ++g)
      if (!has_window_pages(chain, g)) return false;
    return true;
  };
  while (chain.size() > own && !complete()) chain.pop_back();
  return chain;
}

std::int64_t PageStore::advance(Text& text, std::span<const std::int32_t> ids) {
  if (text.tip_ == nullptr) return 0;
  const std::vector<Block*> chain = known_chain(text, ids);
  const auto known = static_cast<std::size_t>(text.full_);
  if (chain.size() == known) return 0;
  for (; text.blocks_.size() > known; text.blocks_.pop_back(), text.own_.pop_back())
    for (std::size_t g = 0; g < groups_.size(); ++g) let_go(*text.blocks_.back(), g);
  for (std::size_t i = known; i < chain.size(); ++i) {
    ++chain[i]->texts;
    text.blocks_.push_back(chain[i]);
    text.own_.emplace_back();
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const auto from =
        static_cast<std::size_t>(first_needed(g, static_cast<std::int64_t>(chain.size()) * page_positions_));
    for (std::size_t i = std::max(from, known); i < chain.size(); ++i) hold(*chain[i], g);
    for (auto i = static_cast<std::size_t>(text.kept_from_[g]); i < std::min(from, known); ++i)
      let_go(*chain[i], g);
    text.kept_from_[g] = std::max(text.kept_from_[g], static_cast<std::int64_t>(from));
  }
  text.tip_ = chain.back();
  text.full_ = static_cast<std::int64_t>(chain.size());
  return text.full_ * page_positions_;
}

void PageStore::hold(Block& block, std::size_t group) {
  if (block.users[group]++ == 0) idle_[group].erase({block.idle_since[group], &block});
}

void PageStore::let_go(Block& block, std::size_t group) {
  if (--block.users[group] > 0) return;
  if (block.in_tree) {
    block.idle_since[group] = ++clock_;
    idle_[group].insert({clock_, &block});
  } else {
    free_[group].push_back(std::exchange(block.pages[group], 0));
  }
}

std::int64_t PageStore::take_page(std::size_t group) {
  if (free_[group].empty()) {
    if (idle_[group].empty()) return 0;
    Block* oldest = idle_[group].begin()->second;
    idle_[group].erase(idle_[group].begin());
    const std::int64_t page = std::exchange(oldest->pages[group], 0);
    drop_if_empty(oldest);
    return page;
  }
  const std::int64_t page = free_[group].back();
  free_[group].pop_back();
  return page;
}

/// Removes a block of the tree that holds nothing and that nothing stands on, and its parents alike.
void PageStore::drop_if_empty(Block* block) {
  while (block->parent != nullptr && block->texts == 0 && block->children.empty() &&
         std::all_of(block->pages.begin(), block->pages.end(), [](std::int64_t p) { return p == 0; })) {
    Block* parent = block->parent;
    parent->children.erase(parent->children.find(block->ids));
    block = parent;
  }
  if (block->parent == nullptr && block->texts == 0 && block->children.empty())
    std::erase_if(roots_, [&](const auto& entry) { return entry.second.get() == block; });
}

/// Takes a block of the tree in place of the text's own of the same ids. What the tree's has lost is made up.
void PageStore::share(Text& text, Block& block) {
  const auto i = static_cast<std::size_t>(text.full_);
  Block& own = *text.own_[i];
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (block.pages[g] == 0) {
      block.pages[g] = own.pages[g];
      block.users[g] = 1;
    } else {
      hold(block, g);
      free_[g].push_back(own.pages[g]);
    }
  }
  ++block.texts;
  text.blocks_[i] = &block;
  text.own_[i].reset();
  text.tip_ = &block;
}

bool PageStore::reserve(Text& text, std::int64_t end) {
  const std::int64_t wanted = (end + page_positions_ - 1) / page_positions_;
  const std::int64_t more = wanted - text.blocks();
  if (more <= 0) return true;
  for (std::size_t g = 0; g < groups_.size(); ++g)
    if (static_cast<std::int64_t>(free_[g].size() + idle_[g].size()) < more) return false;
  for (std::int64_t i = 0; i < more; ++i) {
    auto block = std::make_unique<Block>(groups_.size());
    block->texts = 1;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      block->pages[g] = take_page(g);
      block->users[g] = 1;
    }
    text.blocks_.push_back(block.get());
    text.own_.push_back(std::move(block));
  }
  return true;
}

void PageStore::written(Text& text, std::span<const std::int32_t> ids) {
  const auto end = static_cast<std::int64_t>(ids.size());
  for (; (text.full_ + 1) * page_positions_ <= end; ++text.full_) {
    if (text.tip_ == nullptr) continue;
    const auto from = static_cast<std::size_t>(text.full_ * page_positions_);
    const auto part = ids.subspan(from, static_cast<std::size_t>(page_positions_));
    std::vector<std::int32_t> held(part.begin(), part.end());
    const auto [place, is_new] = text.tip_->children.try_emplace(std::move(held), nullptr);
    if (!is_new) {  // another text was here first
      share(text, *place->second);
      continue;
    }
    place->second = std::move(text.own_[static_cast<std::size_t>(text.full_)]);
    Block* block = place->second.get();
    block->ids = place->first;
    block->parent = text.tip_;
    block->in_tree = true;
    text.tip_ = block;
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const std::int64_t needed = first_needed(g, end);
    for (std::int64_t& i = text.kept_from_[g]; i < needed && i < text.blocks(); ++i)
      let_go(*text.blocks_[static_cast<std::size_t>(i)], g);
  }
}

void PageStore::release(Text& text) {
  // The last first: it makes room before what it stands on.
  for (std::int64_t i = text.blocks(); i-- > 0;) {
    Block* block = text.blocks_[static_cast<std::size_t>(i)];
    for (std::size_t g = 0; g < groups_.size(); ++g)
      if (i >= text.kept_from_[g]) let_go(*block, g);
    --block->texts;
    if (block->in_tree) drop_if_empty(block);
  }
  if (text.root_ != nullptr) {
    --text.root_->texts;
    drop_if_empty(text.root_);
  }
  text = {};
}

std::int64_t PageStore::page(const Text& text, std::size_t group, std::int64_t block) const {
  return block < text.kept_from_[group] ? 0 : text.blocks_[static_cast<std::size_t>(block)]->pages[group];
}

std::size_t PageStore::counted_group() const {
  const auto whole = std::find_if(groups_.begin(), groups_.end(), [](const Group& g) { return !g.window; });
  return whole == groups_.end() ? 0 : static_cast<std::size_t>(whole - groups_.begin());
}

PageStore::Counts PageStore::counts(std::size_t g) const {
  const std::int64_t pages = groups_[g].pages - 1;
  const auto reusable = static_cast<std::int64_t>(idle_[g].size());
  return {pages, pages - reusable - static_cast<std::int64_t>(free_[g].size()), reusable};
}

std::int64_t PageStore::available() const {
  const std::size_t g = counted_group();
  if (groups_[g].window) return std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(free_[g].size() + idle_[g].size());
}

}  // namespace caldera
