#include "lm/tokenizers/sources/expressions.h"

#include <algorithm>
#include <vector>

#include "lm/tokenizers/pre_tokenizers/byte_level.h"
#include "lm/tokenizers/pre_tokenizers/pattern_split.h"

namespace caldera::detail {
namespace {

using Expression = std::string_view;

// The expressions of the models' own tokenizer.json files; which names share them is llama.cpp's knowledge
// (https://github.com/ggml-org/llama.cpp/blob/master/src/llama-vocab.cpp).
#define CALDERA_TAIL R"(\s*[\r\n]+|\s+(?!\S)|\s+)"
#define CALDERA_CONTRACTIONS R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
#define CALDERA_GPT2 R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"
#define CALDERA_LETTERS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|)"
#define CALDERA_SYMBOLS R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
#define CALDERA_UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define CALDERA_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define CALDERA_CASED(contractions)                                        \
  R"([^\r\n\p{L}\p{N}]?)" CALDERA_UPPER "*" CALDERA_LOWER "+" contractions \
  R"(|[^\r\n\p{L}\p{N}]?)" CALDERA_UPPER "+" CALDERA_LOWER "*" contractions
#define CALDERA_CASED_TAIL R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" CALDERA_TAIL
#define CALDERA_CJK R"([一-龥぀-ゟ゠-ヿ]+)"

constexpr Expression kGpt2[] = {CALDERA_GPT2};
constexpr Expression kDigitsGpt2[] = {R"(\p{N})", CALDERA_GPT2};
constexpr Expression kLlama3Expressions[] = {CALDERA_CONTRACTIONS CALDERA_LETTERS
                                             R"(\p{N}{1,3})" CALDERA_SYMBOLS CALDERA_TAIL};
constexpr Expression kQwen2[] = {CALDERA_CONTRACTIONS CALDERA_LETTERS
                                 R"(\p{N})" CALDERA_SYMBOLS CALDERA_TAIL};
constexpr Expression kQwen35[] = {
    CALDERA_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" CALDERA_TAIL};
constexpr Expression kJais2[] = {
    CALDERA_CONTRACTIONS CALDERA_LETTERS
    R"(\p{N}{1,3})" CALDERA_SYMBOLS
    R"(\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S))"
    R"(|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})"};
constexpr Expression kMinicpm5[] = {
    R"(\p{N}{1,3})", CALDERA_CONTRACTIONS CALDERA_LETTERS R"(\p{N}+)" CALDERA_SYMBOLS CALDERA_TAIL};
constexpr Expression kGpt4o[] = {CALDERA_CASED(CALDERA_CONTRACTIONS "?") R"(|\p{N}{1,3})" CALDERA_CASED_TAIL};
constexpr Expression kTekken[] = {CALDERA_CASED("") R"(|\p{N})" CALDERA_CASED_TAIL};
constexpr Expression kTinyAya[] = {
    R"(\d{1,3}(?=(?:\d{3})*\b))",
    CALDERA_CASED(CALDERA_CONTRACTIONS "?") R"(|\p{N}{1,3})" CALDERA_CASED_TAIL};
constexpr Expression kYoutu[] = {
    R"([가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+)",
    CALDERA_CASED(CALDERA_CONTRACTIONS "?") R"(|\p{N})" CALDERA_CASED_TAIL};
constexpr Expression kDeepseekLlm[] = {
    R"([\r\n])",
    R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\x{1F7D}ᾀ-ᾴᾶ-ᾼ\x{1FBE}ῂ-ῄῆ-ῌῐ-\x{1FD3}ῖ-\x{1FDB}ῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\x{2126}ℨ\x{212A}-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)",
    R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)",
    R"(\s+$)",
    R"([一-龥ࠀ-一가-퟿]+)",
    R"(\p{N}+)"};
constexpr Expression kDeepseekCoder[] = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                                         R"([一-龥ࠀ-一가-퟿]+)", R"(\p{N})"};
#define CALDERA_DEEPSEEK3(symbols_end) \
  R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+)" symbols_end
constexpr Expression kDeepseek3[] = {R"(\p{N}{1,3})", CALDERA_CJK,
                                     CALDERA_DEEPSEEK3(R"([\r\n]*|)") CALDERA_TAIL};
constexpr Expression kSpark[] = {R"(\p{N}{1,3})", CALDERA_CJK, CALDERA_DEEPSEEK3(R"(|[\r\n]|\s+(?!\S)|\s+)"),
                                 R"(\p{N})"};
constexpr Expression kFalcon[] = {R"([\p{P}\$\+<=>\^~\|`]+)", CALDERA_GPT2, R"([0-9][0-9][0-9])"};
constexpr Expression kBloom[] = {R"( ?[^(\s|.,!?…。，、।۔،)]+)"};
constexpr Expression kViking[] = {R"( ?[^(\s|.,!?…。，、।۔،)]+)", R"(\p{N})"};
constexpr Expression kChameleon[] = {R"(<sentinel:[0-9]+>)",    R"((IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z)",
                                     R"(([\t\n]|    |  ))",     R"(\p{N})",
                                     R"([\p{P}!-/:-@\[-`{-~])", CALDERA_GPT2};
#define CALDERA_NOT_HAN_UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]])"
#define CALDERA_NOT_HAN_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]])"
constexpr Expression kKimi[] = {R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?)" CALDERA_NOT_HAN_UPPER
                                "*" CALDERA_NOT_HAN_LOWER "+" CALDERA_CONTRACTIONS
                                R"(?|[^\r\n\p{L}\p{N}]?)" CALDERA_NOT_HAN_UPPER "+" CALDERA_NOT_HAN_LOWER
                                "*" CALDERA_CONTRACTIONS R"(?|\p{N}{1,3})" CALDERA_SYMBOLS CALDERA_TAIL};
constexpr Expression kSuperBpe[] = {R"(\p{N}+)", R"((?=(\d{3})+(?!\d)))"};
constexpr Expression kBailing[] = {
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr Expression kSeedCoder[] = {CALDERA_CONTRACTIONS CALDERA_LETTERS
                                     R"(\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|)" CALDERA_TAIL};
constexpr Expression kUfakzeka[] = {R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N})" CALDERA_SYMBOLS CALDERA_TAIL};
constexpr Expression kLaguna[] = {
    R"([^\n]+|[\n]+)", CALDERA_CONTRACTIONS CALDERA_LETTERS R"(\p{N})" CALDERA_SYMBOLS CALDERA_TAIL};
constexpr Expression kExaoneMoe[] = {
    CALDERA_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n])"
    R"(|\s+(?!\S)|\s+)"};
constexpr Expression kDefault[] = {R"([\p{P}\$\+<=>\^~\|]+)", CALDERA_GPT2, R"(\p{N}+)",
                                   R"([0-9][0-9][0-9])"};

constexpr PreTokenization kEntries[] = {
    {"", kDefault},
    {"default", kDefault},
    {"gpt-2", kGpt2},
    {"gpt2", kGpt2},
    {"phi-2", kGpt2},
    {"mpt", kGpt2},
    {"olmo", kGpt2},
    {"jais", kGpt2},
    {"trillion", kGpt2},
    {"granite-docling", kGpt2},
    {"exaone4", kGpt2},
    {"gigachat", kGpt2},
    {"a.x-4.0", kGpt2},
    {"mellum", kGpt2},
    {"modern-bert", kGpt2},
    {"jina-es", kGpt2},
    {"jina-de", kGpt2},
    {"jina-v2-es", kGpt2},
    {"jina-v2-de", kGpt2},
    {.name = "jina-v1-en", .expressions = kGpt2, .add_sep = true},
    {.name = "jina-v2-code", .expressions = kGpt2, .add_sep = true},
    {.name = "roberta-bpe", .expressions = kGpt2, .add_sep = true},
    {"starcoder", kDigitsGpt2},
    {"refact", kDigitsGpt2},
    {"command-r", kDigitsGpt2},
    {"smollm", kDigitsGpt2},
    {"codeshell", kDigitsGpt2},
    {"exaone", kDigitsGpt2},
    {"minerva-7b", kDigitsGpt2},
    {"mellum2", kDigitsGpt2},
    {.name = "llama3", .expressions = kLlama3Expressions, .ignore_merges = true, .add_bos = true},
    {.name = "llama-v3", .expressions = kLlama3Expressions, .ignore_merges = true, .add_bos = true},
    {.name = "llama-bpe", .expressions = kLlama3Expressions, .ignore_merges = true, .add_bos = true},
    {.name = "falcon3", .expressions = kLlama3Expressions, .ignore_merges = true, .add_bos = true},
    {.name = "falcon-h1", .expressions = kLlama3Expressions, .ignore_merges = true, .add_bos = true},
    {.name = "pixtral", .expressions = kLlama3Expressions, .ignore_merges = true, .add_bos = true},
    {.name = "midm-2.0", .expressions = kLlama3Expressions, .ignore_merges = true, .add_bos = true},
    {.name = "lfm2", .expressions = kLlama3Expressions, .ignore_merges = true, .add_bos = true},
    {.name = "jina-v5-nano", .expressions = kLlama3Expressions, .ignore_merges = true, .add_bos = true},
    {"dbrx", kLlama3Expressions},
    {"smaug-bpe", kLlama3Expressions},
    {"glm4", kLlama3Expressions},
    {"chatglm-bpe", kLlama3Expressions},
    {"jais-2", kJais2},
    {.name = "minicpm5", .expressions = kMinicpm5, .ignore_merges = true},
    {.name = "qwen2", .expressions = kQwen2, .nfc = true},
    {.name = "qwen35", .expressions = kQwen35, .nfc = true},
    {"deepseek-r1-qwen", kQwen2},
    {"kormo", kQwen2},
    {"f2llmv2", kQwen2},
    {"megrez", kQwen2},
    {"stablelm2", kQwen2},
    {"hunyuan", kQwen2},
    {"solar-open", kQwen2},
    {"grok-2", kQwen2},
    {"ufakzeka", kUfakzeka},
    {"gpt-4o", kGpt4o},
    {"llama4", kGpt4o},
    {"kanana2", kGpt4o},
    {"talkie", kGpt4o},
    {"minimax-m2", kGpt4o},
    {.name = "granite-embed-multi-97m", .expressions = kGpt4o, .ignore_merges = true},
    {.name = "tekken", .expressions = kTekken, .ignore_merges = true, .add_bos = true},
    {"tiny_aya", kTinyAya},
    {"cohere2moe", kTinyAya},
    {.name = "youtu", .expressions = kYoutu, .ignore_merges = true},
    {"deepseek-llm", kDeepseekLlm},
    {"deepseek-coder", kDeepseekCoder},
    {"deepseek-v3", kDeepseek3},
    {"hunyuan-dense", kDeepseek3},
    {"joyai-llm", kDeepseek3},
    {"hy-v4", kDeepseek3},
    {"spark2.5", kSpark},
    {"falcon", kFalcon},
    {"bloom", kBloom},
    {"poro-chat", kBloom},
    {"gpt3-finnish", kBloom},
    {"viking", kViking},
    {.name = "chameleon", .expressions = kChameleon, .add_bos = true},
    {"kimi-k2", kKimi},
    {"superbpe", kSuperBpe},
    {"bailingmoe", kBailing},
    {"bailingmoe2", kBailing},
    {"llada-moe", kBailing},
    {"seed-coder", kSeedCoder},
    {"laguna", kLaguna},
    {"exaone-moe", kExaoneMoe},
};

}  // namespace

const PreTokenization* find_pre_tokenization(std::string_view name) {
  const auto* found = std::ranges::find(kEntries, name, &PreTokenization::name);
  return found == std::end(kEntries) ? nullptr : found;
}

std::unique_ptr<PreTokenizer> make_pre_tokenizer(const PreTokenization& entry, const std::string& where) {
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  for (const auto expression : entry.expressions) {
    auto regex = std::make_unique<Regex>(expression, Regex::Syntax::oniguruma, where);
    steps.push_back(make_split(TextPattern(std::move(regex)), SplitBehavior::isolated, false));
  }
  steps.push_back(make_byte_level(false, false));
  return make_sequence(std::move(steps));
}

}  // namespace caldera::detail
