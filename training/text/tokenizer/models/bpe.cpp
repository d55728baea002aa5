#include "training/text/tokenizer/models/bpe.h"

#include "training/text/tokenizer/models/merge_word.h"
#include "training/text/tokenizer/unicode/characters.h"

namespace caldera::detail {

BpeModel::BpeModel(TokenTable tokens, MergeTable merges, Options options)
    : tokens_(std::move(tokens)),
      merges_(std::move(merges)),
      options_(std::move(options)),
      byte_tokens_(tokens_) {
  if (parts_stand_alone()) cuts_ = WordCuts(tokens_);
}

bool BpeModel::parts_stand_alone() const {
  if (options_.ignore_merges || !options_.continuing_prefix.empty() || !options_.word_suffix.empty()) {
    return false;
  }
  // The text of an unknown character's or a byte's token is not the text that it stands for.
  bool alone = true;
  merges_.for_each([&](std::int32_t left, std::int32_t right, const Merge&) {
    for (const std::int32_t id : {left, right}) {
      if (id == options_.unknown_id || (options_.byte_fallback && byte_tokens_.has(id))) alone = false;
    }
  });
  return alone;
}

void BpeModel::characters(std::string_view word, std::vector<std::int32_t>& ids) const {
  bool unknown = false;  // an unknown token is due
  std::string decorated;
  const std::size_t end = word.size();
  for (std::size_t at = 0, bytes = 0; at < end; at += bytes) {
    bytes = first_character(word.substr(at)).bytes;
    std::string_view character = word.substr(at, bytes);
    if (!options_.continuing_prefix.empty() || !options_.word_suffix.empty()) {
      decorated.clear();
      if (at > 0) decorated += options_.continuing_prefix;
      decorated += character;
      if (at + bytes == end) decorated += options_.word_suffix;
      character = decorated;
    }
    if (const auto id = tokens_.find(character)) {
      if (unknown) ids.push_back(*options_.unknown_id);
      unknown = false;
      ids.push_back(*id);
      continue;
    }
    // Before an unknown token that is due, as in the reference: that one waits for the next known character.
    if (options_.byte_fallback && byte_tokens_.append(character, ids)) continue;
    // A character that has no token, with none to say so, is dropped, as in the reference.
    if (!options_.unknown_id) continue;
    if (unknown && !options_.fuse_unknown) ids.push_back(*options_.unknown_id);
    unknown = true;
  }
  if (unknown) ids.push_back(*options_.unknown_id);
}

void BpeModel::encode(std::string_view word, std::vector<std::int32_t>& ids) const {
  if (options_.ignore_merges) {
    if (const auto id = tokens_.find(word)) {
      ids.push_back(*id);
      return;
    }
  }
  const std::size_t begin = ids.size();
  characters(word, ids);
  merge_word(merges_, ids, begin);
}

}  // namespace caldera::detail
