#include <fmt/format.h>

#include "engine/base/error.h"
#include "lm/base/unicode/utf8.h"
#include "lm/tokenizers/sources/protobuf.h"
#include "lm/tokenizers/sources/sentencepiece.h"

namespace caldera::detail {
namespace {

using Field = ProtobufReader::Field;

// Field numbers of sentencepiece_model.proto.
enum ModelField : std::uint8_t { kPieces = 1, kTrainerSpec = 2, kNormalizerSpec = 3 };
enum PieceField : std::uint8_t { kPiece = 1, kScore = 2, kType = 3 };
enum TrainerField : std::uint8_t { kModelType = 3, kSuffixSpace = 24, kUnkId = 40, kBosId = 41, kEosId = 42 };
enum NormalizerField : std::uint8_t { kCharsmap = 2, kDummyPrefix = 3, kRemoveExtra = 4, kEscape = 5 };

void read_piece(const Field& message, SentencePieceVocabulary& vocabulary, const std::string& where) {
  ProtobufReader reader(message.bytes, where);
  std::string text;
  float score = 0;
  std::uint64_t type = static_cast<std::uint64_t>(PieceType::normal);
  for (Field field; reader.next(field);) {
    if (field.number == kPiece && field.is_bytes) text = to_utf8(field.bytes);
    if (field.number == kScore && !field.is_bytes) score = ProtobufReader::to_float(field);
    if (field.number == kType && !field.is_bytes) type = field.integer;
  }
  if (type < 1 || type > 6) throw FileError(fmt::format("{}: a piece has the unknown type {}", where, type));
  vocabulary.pieces.push_back(std::move(text));
  vocabulary.scores.push_back(score);
  vocabulary.types.push_back(static_cast<PieceType>(type));
}

void read_trainer(const Field& message, SentencePieceVocabulary& vocabulary, const std::string& where) {
  ProtobufReader reader(message.bytes, where);
  const auto id = [](const Field& field) {
    const auto value = static_cast<std::int64_t>(field.integer);
    return value < 0 || value > kMaxTokenId ? std::nullopt : std::optional(static_cast<std::int32_t>(value));
  };
  for (Field field; reader.next(field);) {
    if (field.is_bytes) continue;
    switch (field.number) {
      case kModelType:
        if (field.integer != 1 && field.integer != 2) {
          throw FileError(fmt::format(
              "{}: a SentencePiece model of words or characters (model_type {}) is not supported (supported: "
              "1, Unigram; 2, BPE)",
              where, field.integer));
        }
        vocabulary.kind =
            field.integer == 2 ? SentencePieceVocabulary::Kind::bpe : SentencePieceVocabulary::Kind::unigram;
        break;
      case kSuffixSpace:
        if (field.integer != 0) {
          throw FileError(fmt::format("{}: treat_whitespace_as_suffix is not supported", where));
        }
        break;
      case kUnkId:
        vocabulary.unknown_id = id(field);
        break;
      case kBosId:
        vocabulary.bos_id = id(field);
        break;
      case kEosId:
        vocabulary.eos_id = id(field);
        break;
      default:
        break;
    }
  }
}

void read_normalizer_spec(const Field& message, SentencePieceVocabulary& vocabulary,
                          const std::string& where) {
  ProtobufReader reader(message.bytes, where);
  for (Field field; reader.next(field);) {
    if (field.number == kCharsmap && field.is_bytes) vocabulary.charsmap = std::string(field.bytes);
    if (field.is_bytes) continue;
    if (field.number == kDummyPrefix && field.integer == 0) {
      vocabulary.prefix = SentencePieceVocabulary::Prefix::none;
    }
    if (field.number == kRemoveExtra) vocabulary.remove_extra_whitespaces = field.integer != 0;
    if (field.number == kEscape && field.integer == 0) {
      throw FileError(fmt::format("{}: escape_whitespaces=false is not supported", where));
    }
  }
}

}  // namespace

SentencePieceVocabulary read_sentencepiece(std::string_view file, const std::string& where) {
  SentencePieceVocabulary vocabulary;
  vocabulary.unknown_id = 0;  // the format's defaults
  vocabulary.bos_id = 1;
  vocabulary.eos_id = 2;
  ProtobufReader reader(file, where);
  for (Field field; reader.next(field);) {
    if (!field.is_bytes) continue;
    if (field.number == kPieces) read_piece(field, vocabulary, where);
    if (field.number == kTrainerSpec) read_trainer(field, vocabulary, where);
    if (field.number == kNormalizerSpec) read_normalizer_spec(field, vocabulary, where);
  }
  if (vocabulary.pieces.empty()) throw FileError(fmt::format("{}: holds no pieces", where));
  if (vocabulary.pieces.size() > static_cast<std::size_t>(kMaxTokenId)) {
    throw FileError(fmt::format("{}: holds too many pieces", where));
  }
  const auto size = static_cast<std::int32_t>(vocabulary.pieces.size());
  for (auto* id : {&vocabulary.unknown_id, &vocabulary.bos_id, &vocabulary.eos_id}) {
    if (*id && **id >= size) *id = std::nullopt;
  }
  return vocabulary;
}

}  // namespace caldera::detail
