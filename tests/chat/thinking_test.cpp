// Thinking and answers in generated text, however it is cut into pieces.
#include "training/chat/thinking.h"

#include <gtest/gtest.h>

namespace caldera {
namespace {

using Parts = std::vector<ThinkingPart>;

/// The parts of `text` fed in pieces of `size` bytes, neighbours of a kind joined.
Parts split(const std::string& text, std::size_t size, std::string_view prompt = {}) {
  ThinkingSplitter splitter(prompt);
  Parts all;
  const auto add = [&](const Parts& parts) {
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

void expect_parts(const std::string& text, const Parts& expected, std::string_view prompt = {}) {
  for (std::size_t size = 1; size <= text.size() + 1; ++size)
    EXPECT_EQ(split(text, size, prompt), expected) << text << ", " << size << " bytes at a time";
}

TEST(ThinkingSplitter, MarksOfTheFamilies) {
  expect_parts("<think>\nhm\n\nso\n</think>\n\nYes.\n", {{true, "hm\n\nso"}, {false, "Yes.\n"}});
  expect_parts("<think>\n\n</think>\n\nYes", {{false, "Yes"}});
  expect_parts("[THINK]a[/THINK]b", {{true, "a"}, {false, "b"}});
  expect_parts("<|channel|>analysis<|message|>we<|end|><|start|>assistant<|channel|>final<|message|>four",
               {{true, "we"}, {false, "four"}});
  expect_parts("<|START_THINKING|>x<|END_THINKING|><|START_RESPONSE|>y<|END_RESPONSE|>",
               {{true, "x"}, {false, "y"}});
}

TEST(ThinkingSplitter, WhatOnlyLooksLikeAMark) {
  expect_parts("a < b <thin> and <think>this</think>", {{false, "a < b <thin> and <think>this</think>"}});
  expect_parts(" \n no thinking", {{false, " \n no thinking"}});
  expect_parts("<think>a </thinking> b </think>c", {{true, "a </thinking> b"}, {false, "c"}});
  expect_parts("<thin", {{false, "<thin"}});
  expect_parts("<think>never ends", {{true, "never ends"}});
}

TEST(ThinkingSplitter, TemplatesMayOpenIt) {
  expect_parts("so</think>\n\nYes", {{true, "so"}, {false, "Yes"}}, "<|assistant|>\n<think>\n");
  expect_parts("Yes", {{false, "Yes"}}, "<|im_start|>assistant\n<think>\n\n</think>\n\n");
  expect_parts("Yes", {{false, "Yes"}}, "user: what is <think>? assistant:");
}

}  // namespace
}  // namespace caldera
