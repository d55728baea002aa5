// PageStore: which text has which page of a paged cache, and which pages hold the beginnings of texts that
// are no longer there. Host code, no tensors.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace caldera {

/// The pages of each group of layers, in blocks: block i of a text has positions [i, i + 1) * page_positions
/// in a page of every group. Full blocks are kept when their text leaves, in a tree by what they hold, and a
/// text that begins alike starts from them; those that were not used for longest make room first. A group
/// with a window needs the pages of its last `window` positions only, and gives the others up. Not
/// thread-safe.
class PageStore {
 private:
  struct Block;

 public:
  struct Group {
    std::int64_t pages = 0;              ///< numbered from 0; page 0 belongs to nobody
    std::optional<std::int64_t> window;  ///< none: all positions are needed
  };
  struct Counts {
    std::int64_t pages = 0, in_use = 0, reusable = 0;
  };

  /// With `reuse` false nothing is kept.
  PageStore(std::vector<Group> groups, std::int64_t page_positions, bool reuse);
  ~PageStore();
  PageStore(const PageStore&) = delete;
  PageStore& operator=(const PageStore&) = delete;

  /// A text's blocks. Give it back by release(); it does not do so itself.
  class Text {
   public:
    Text();
    ~Text();
    Text(Text&&) noexcept;
    Text& operator=(Text&&) noexcept;
    std::int64_t blocks() const { return static_cast<std::int64_t>(blocks_.size()); }
    /// Blocks whose keys and values are all written.
    std::int64_t full_blocks() const { return full_; }

   private:
    friend class PageStore;
    std::vector<Block*> blocks_;
    std::vector<std::unique_ptr<Block>> own_;  // those of blocks_ that are not in the tree
    std::vector<std::int64_t> kept_from_;      // of each group: blocks before it have no page any more
    std::int64_t full_ = 0;                    // blocks that are full
    Block* root_ = nullptr;                    // of its tree; null: it has none
    Block* tip_ = nullptr;                     // in the tree: the last full block, or the root
  };

  /// Begins a text whose first ids are these, with the blocks that the store has of its beginning: all but
  /// the last id may be among them. `kind` tells texts apart whose keys differ for equal ids (adapters).
  /// `reused` is the number of positions.
  Text begin(const std::string& kind, std::span<const std::int32_t> ids, std::int64_t& reused);
  /// Goes on with blocks that other texts have written since, in place of what is written of the text's last
  /// block. Returns how many positions are written then; 0 where nothing was found.
  std::int64_t advance(Text& text, std::span<const std::int32_t> ids);
  /// Makes the text's blocks reach to position `end`. False where pages are missing: nothing is changed then.
  bool reserve(Text& text, std::int64_t end);
  /// Says that keys and values of `ids`, all of the text's so far, are written. Where another text has
  /// written a block of the same ids, the two share it from now on, and a page becomes free.
  void written(Text& text, std::span<const std::int32_t> ids);
  void release(Text& text);
  /// Texts that begin from now on start from nothing that is kept now: for keys that hold no more.
  void forget() { ++era_; }

  /// The page of a block; 0 where the window has left it behind.
  std::int64_t page(const Text& text, std::size_t group, std::int64_t block) const;
  const std::vector<Group>& groups() const { return groups_; }
  std::int64_t page_positions() const { return page_positions_; }
  /// Counts the pages of the first group that keeps all positions, or of the first.
  Counts counts() const { return counts(counted_group()); }
  Counts counts(std::size_t group) const;
  /// Trees of kinds that keep a page, or are in use.
  std::size_t trees() const { return roots_.size(); }
  /// Pages that could be taken now, of each group that keeps all positions; those with a window have enough.
  std::int64_t available() const;

 private:
  /// Pages of the tree that nobody needs: since when, and the block. The first make room first.
  using Idle = std::set<std::pair<std::uint64_t, Block*>>;

  std::int64_t take_page(std::size_t group);
  void hold(Block& block, std::size_t group);
  void let_go(Block& block, std::size_t group);
  void drop_if_empty(Block* block);
  void share(Text& text, Block& block);
  std::vector<Block*> known_chain(const Text& text, std::span<const std::int32_t> ids) const;
  bool has_window_pages(const std::vector<Block*>& chain, std::size_t group) const;
  std::size_t counted_group() const;
  std::int64_t first_needed(std::size_t group, std::int64_t end) const;

  std::vector<Group> groups_;
  std::int64_t page_positions_;
  bool reuse_;
  std::uint64_t clock_ = 0;
  std::uint64_t era_ = 0;  // its pages make room as others that nobody needs
  std::map<std::pair<std::uint64_t, std::string>, std::unique_ptr<Block>> roots_;
  std::vector<std::vector<std::int64_t>> free_;  // of each group
  std::vector<Idle> idle_;                       // of each group
};

}  // namespace caldera
