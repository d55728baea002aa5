// A tokenizer.json small enough to reason about.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>

namespace caldera::testing {

/// A tokenizer like Llama's with a vocabulary of a few words: ids 0..2 special, 3..258 bytes, then pieces.
inline nlohmann::json small_tokenizer() {
  using nlohmann::json;
  json vocab = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}};
  for (int byte = 0; byte < 256; ++byte) vocab[fmt::format("<0x{:02X}>", byte)] = 3 + byte;
  int next = 259;
  for (const char* piece : {"▁", "a", "b", "c", "ab", "bc", "abc", "▁a", "▁ab", "aa", "aaaa"})
    vocab[piece] = next++;
  const auto special = [](int id, const char* content) {
    return json{{"id", id},        {"content", content}, {"special", true},     {"normalized", false},
                {"lstrip", false}, {"rstrip", false},    {"single_word", false}};
  };
  return {{"added_tokens", {special(0, "<unk>"), special(1, "<s>"), special(2, "</s>")}},
          {"normalizer",
           {{"type", "Sequence"},
            {"normalizers",
             {{{"type", "Prepend"}, {"prepend", "▁"}},
              {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}}}}}},
          {"pre_tokenizer", nullptr},
          {"post_processor",
           {{"type", "TemplateProcessing"},
            {"single", {{{"SpecialToken", {{"id", "<s>"}}}}, {{"Sequence", {{"id", "A"}}}}}},
            {"special_tokens", {{"<s>", {{"ids", {1}}}}}}}},
          {"decoder",
           {{"type", "Sequence"},
            {"decoders",
             {{{"type", "Replace"}, {"pattern", {{"String", "▁"}}}, {"content", " "}},
              {{"type", "ByteFallback"}},
              {{"type", "Fuse"}},
              {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}}},
          {"model",
           {{"type", "BPE"},
            {"unk_token", "<unk>"},
            {"fuse_unk", true},
            {"byte_fallback", true},
            {"vocab", vocab},
            {"merges", {"b c", "a b", "a a", "aa aa", "▁ a", "▁ ab", "a bc"}}}}};
}

inline constexpr int kByte = 3;
enum Piece : std::int32_t { kSpace = 259, kA, kB, kC, kAb, kBc, kAbc, kSpA, kSpAb, kAa, kAaaa };

}  // namespace caldera::testing
