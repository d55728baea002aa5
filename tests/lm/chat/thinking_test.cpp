// Thinking and answers in generated text, however it is cut into pieces.
#include "lm/chat/thinking.h"

#include <gtest/gtest.h>

namespace caldera {
namespace {

using ThoughtParts = std::vector<ThinkingPart>;

/// The parts of `text` fed in pieces of `size` bytes, neighbours of a kind joined.
ThoughtParts split_thoughts(const std::string& text, std::size_t size, std::string_view prompt = {}) {
  ThinkingSplitter splitter(prompt);
  ThoughtParts all;
  const auto add = [&](const ThoughtParts& parts) {
    for (const ThinkingPart& part : parts) {
      EXPECT_FALSE(part.text.empty());
      if (!all.empty() && all.back().thinking == part.thinking)
        all.back().text += part.text;
      else
        all.push_back(part);
    }
  };
  for (std::size_t at = 0; at < text.size(); at += size) add(splitter.push(text.substr(at, size)));
  add(splitter.finish());
  return all;
}

void expect_thoughts(const std::string& text, const ThoughtParts& expected, std::string_view prompt = {}) {
  for (std::size_t size = 1; size <= text.size() + 1; ++size)
    EXPECT_EQ(split_thoughts(text, size, prompt), expected) << text << ", " << size << " bytes at a time";
}

TEST(ThinkingSplitter, MarksOfTheFamilies) {
  expect_thoughts("<think>\nhm\n\nso\n</think>\n\nYes.\n", {{true, "hm\n\nso"}, {false, "Yes.\n"}});
  expect_thoughts("<think>\n\n</think>\n\nYes", {{false, "Yes"}});
  expect_thoughts("[THINK]a[/THINK]b", {{true, "a"}, {false, "b"}});
  expect_thoughts("<|channel|>analysis<|message|>we<|end|><|start|>assistant<|channel|>final<|message|>four",
                  {{true, "we"}, {false, "four"}});
  expect_thoughts("<|START_THINKING|>x<|END_THINKING|><|START_RESPONSE|>y<|END_RESPONSE|>",
                  {{true, "x"}, {false, "y"}});
}

TEST(ThinkingSplitter, WhatOnlyLooksLikeAMark) {
  expect_thoughts("a < b <thin> and <think>this</think>", {{false, "a < b <thin> and <think>this</think>"}});
  expect_thoughts(" \n no thinking", {{false, " \n no thinking"}});
  expect_thoughts("<think>a </thinking> b </think>c", {{true, "a </thinking> b"}, {false, "c"}});
  expect_thoughts("<thin", {{false, "<thin"}});
  expect_thoughts("<think>never ends", {{true, "never ends"}});
}

TEST(ThinkingSplitter, TemplatesMayOpenIt) {
  expect_thoughts("so</think>\n\nYes", {{true, "so"}, {false, "Yes"}}, "<|assistant|>\n<think>\n");
  expect_thoughts("Yes", {{false, "Yes"}}, "<|im_start|>assistant\n<think>\n\n</think>\n\n");
  expect_thoughts("Yes", {{false, "Yes"}}, "user: what is <think>? assistant:");
}

}  // namespace
}  // namespace caldera
