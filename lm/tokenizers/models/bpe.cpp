#include "lm/tokenizers/models/bpe.h"

#include "lm/base/unicode/characters.h"
#include "lm/tokenizers/models/merge_word.h"
#include "lm/tokenizers/vocabulary/byte_alphabet.h"

namespace caldera::detail {

BpeModel::BpeModel(TokenTable tokens, MergeTable merges, Options options)
    : tokens_(std::move(tokens)),
      merges_(std::move(merges)),
      options_(std::move(options)),
      plain_(options_.continuing_prefix.empty() && options_.word_suffix.empty()),
      byte_tokens_(tokens_),
      character_ids_(tokens_) {
  if (plain_) {
    byte_ids_.emplace();
    for (std::size_t byte = 0; byte < 256 && byte_ids_; ++byte) {
      const char c = static_cast<char>(byte);
      const auto id = tokens_.find(bytes_to_characters({&c, 1}));
      if (id) {
        (*byte_ids_)[byte] = *id;
      } else {
        byte_ids_.reset();
      }
    }
  }
  if (parts_stand_alone()) cuts_ = WordCuts(tokens_);
}

bool BpeModel::parts_stand_alone() const {
  if (options_.ignore_merges || !plain_) return false;
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
    const Character c = first_character(word.substr(at));
    bytes = c.bytes;
    std::string_view character = word.substr(at, bytes);
    std::int32_t id = -1;
    if (plain_) {
      id = character_ids_.find(c.value);
    } else {
      decorated.clear();
      if (at > 0) decorated += options_.continuing_prefix;
      decorated += character;
      if (at + bytes == end) decorated += options_.word_suffix;
      character = decorated;
      id = tokens_.find(character).value_or(-1);
    }
    if (id >= 0) {
      if (unknown) ids.push_back(*options_.unknown_id);
      unknown = false;
      ids.push_back(id);
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

void BpeModel::encode_bytes(std::string_view word, std::vector<std::int32_t>& ids) const {
  if (!byte_ids_) return Model::encode_bytes(word, ids);
  if (options_.ignore_merges && word.size() <= kMaxTokenBytes) {
    thread_local std::string characters;
    characters.clear();
    append_byte_characters(word, characters);
    if (const auto id = tokens_.find(characters)) {
      ids.push_back(*id);
      return;
    }
  }
  const std::size_t begin = ids.size();
  ids.resize(begin + word.size());
  for (std::size_t i = 0; i < word.size(); ++i) {
    ids[begin + i] = (*byte_ids_)[static_cast<unsigned char>(word[i])];
  }
  merge_word(merges_, ids, begin);
}

}  // namespace caldera::detail
