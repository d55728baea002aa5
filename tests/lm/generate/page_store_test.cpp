#include "lm/generate/cache/page_store.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/lm/generate/batch_requests.h"

namespace caldera::testing {
namespace {

constexpr std::int64_t kPage = 4;

struct Held {
  PageStore::Text text;
  std::int64_t reused = 0;
};

Held begun(PageStore& store, const Ids& ids, const std::string& kind = "") {
  Held held;
  held.text = store.begin(kind, ids, held.reused);
  return held;
}

void write(PageStore& store, PageStore::Text& text, const Ids& ids, std::int64_t end) {
  ASSERT_TRUE(store.reserve(text, end));
  store.written(text, std::span(ids).first(static_cast<std::size_t>(end)));
}

/// No page is lost, and none is counted twice.
void expect_all_there(const PageStore& store, std::int64_t in_use, std::size_t group = 0) {
  const PageStore::Counts counts = store.counts(group);
  EXPECT_EQ(counts.in_use, in_use);
  EXPECT_EQ(counts.pages, store.groups()[group].pages - 1);
  EXPECT_LE(counts.in_use + counts.reusable, counts.pages);
}

TEST(PageStore, TextsThatWriteTheSameShareIt) {
  PageStore store({{20, {}}}, kPage, true);
  const Ids ids = random_ids(18, 1);
  Held a = begun(store, ids), b = begun(store, ids);
  EXPECT_EQ(b.reused, 0);
  write(store, a.text, ids, 8);
  write(store, b.text, ids, 8);  // written side by side
  expect_all_there(store, 2);
  for (std::int64_t i = 0; i < 2; ++i) EXPECT_EQ(store.page(a.text, 0, i), store.page(b.text, 0, i));
  write(store, a.text, ids, 18);
  EXPECT_EQ(store.advance(b.text, ids), 16);
  expect_all_there(store, 5);
  write(store, b.text, ids, 18);  // the last page is not full: each has its own
  expect_all_there(store, 6);
  store.release(a.text);
  expect_all_there(store, 5);
  store.release(b.text);
  expect_all_there(store, 0);
  EXPECT_EQ(store.counts().reusable, 4);

  // Every page can be had again, and what is kept goes then.
  Held all = begun(store, random_ids(76, 2), "other");
  EXPECT_TRUE(store.reserve(all.text, 76));
  EXPECT_FALSE(store.reserve(all.text, 77));
  EXPECT_EQ(store.counts().reusable, 0);
  store.release(all.text);
  EXPECT_EQ(store.available(), 19);
  EXPECT_EQ(store.trees(), 0U);
}

TEST(PageStore, AdvancesFromTheMiddleOfAPage) {
  PageStore store({{20, {}}}, kPage, true);
  const Ids ids = random_ids(13, 1);
  Held a = begun(store, ids), b = begun(store, ids);
  write(store, b.text, ids, 6);  // a page and a half
  write(store, a.text, ids, 13);
  EXPECT_EQ(store.advance(b.text, ids), 12);
  EXPECT_EQ(b.text.full_blocks(), 3);
  expect_all_there(store, 4);
  EXPECT_EQ(store.advance(b.text, ids), 0) << "the last id is left";
  Ids other = ids;
  other[9] = (other[9] + 1) % 61;
  Held c = begun(store, other);
  EXPECT_EQ(c.reused, 8);
  EXPECT_EQ(store.advance(c.text, other), 0);
  for (Held* held : {&a, &b, &c}) store.release(held->text);
  expect_all_there(store, 0);
}

TEST(PageStore, WindowsGiveTheirPagesBackWhileAPromptIsFed) {
  constexpr std::int64_t kWindow = 6, kPiece = 8;
  for (const bool reuse : {true, false}) {
    PageStore store({{100, {}}, {40, kWindow}}, kPage, reuse);
    const Ids ids = random_ids(120, 1);
    Held text = begun(store, ids);
    for (std::int64_t end = kPiece; end <= 120; end += kPiece) {
      write(store, text.text, ids, end);
      // The next query looks at kWindow - 1 positions before it: two pages at most.
      EXPECT_LE(store.counts(1).in_use, 2) << end;
      EXPECT_EQ(store.counts(0).in_use, end / kPage);
    }
    Held second = begun(store, ids);
    EXPECT_EQ(second.reused, reuse ? 116 : 0);
    EXPECT_LE(store.counts(1).in_use, 3);
    store.release(text.text);
    store.release(second.text);
    expect_all_there(store, 0, 0);
    expect_all_there(store, 0, 1);
  }
}

/// Where the tree has lost a window's page, a text that writes the same again makes it up.
TEST(PageStore, SharedBlocksGetBackWhatTheyLost) {
  constexpr std::int64_t kWindow = 4;
  PageStore store({{100, {}}, {5, kWindow}}, kPage, true);
  const Ids ids = random_ids(17, 1);
  Held a = begun(store, ids);
  for (std::int64_t end = kPage; end <= 16; end += kPage) write(store, a.text, ids, end);
  store.release(a.text);
  Held other = begun(store, random_ids(16, 9));
  ASSERT_TRUE(store.reserve(other.text, 16));  // takes every page of the window's group
  Held b = begun(store, ids);
  EXPECT_EQ(b.reused, 0);
  store.release(other.text);
  for (std::int64_t end = kPage; end <= 16; end += kPage) write(store, b.text, ids, end);
  EXPECT_EQ(store.counts(0).in_use, 4);
  store.release(b.text);
  Held c = begun(store, ids);
  EXPECT_EQ(c.reused, 16);
  store.release(c.text);
  expect_all_there(store, 0, 0);
  expect_all_there(store, 0, 1);
}

}  // namespace
}  // namespace caldera::testing
