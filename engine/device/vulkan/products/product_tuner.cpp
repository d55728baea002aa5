#include "engine/device/vulkan/products/product_tuner.h"

#include <fmt/core.h>

#include <bit>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/hash.h"
#include "engine/device/vulkan/pipelines/disk_cache.h"
#include "engine/device/vulkan/products/product_families.h"

namespace caldera::vulkan {
namespace {

constexpr std::string_view kFormat = "caldera-products-1";
constexpr std::size_t kMostClasses = 4096;
constexpr std::size_t kLongestLine = 256;
/// A variant has to be this much faster than the table's choice, or the difference may be chance.
constexpr double kClearly = 0.95;
/// What takes so many times as long as the best is not timed to the end.
constexpr double kHopeless = 2;
/// Seconds of a class, the making of pipelines included, after which no further variant is tried.
constexpr double kMostSeconds = 2;

/// Of the shaders: other kernels have other times.
Hash128 shader_digest() {
  Hash128 digest;
  for (const ProductFamily* family : product_families()) digest.mix(family->text());
  return digest;
}

std::string names_of_variants() {
  std::string names;
  for (const ProductVariant& variant : product_variants())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", variant.name);
  return names;
}

int bucket(std::int64_t extent) {
  return extent <= 1 ? 0 : std::bit_width(static_cast<std::uint64_t>(extent) - 1);
}

}  // namespace

TuneSetting TuneSetting::from_environment(bool measured) {
  TuneSetting setting;
  const char* const text = std::getenv("CALDERA_TUNE");
  const std::string_view value = text != nullptr ? text : "";
  if (value.empty()) {
    setting.measure = measured;
  } else if (value == "0" || value == "1") {
    setting.measure = value == "1";
  } else if (value.find('/') != std::string_view::npos) {
    setting.choices = value;
  } else {
    setting.pinned = find_product_variant(value);
    if (setting.pinned == nullptr)
      throw ValueError(
          fmt::format("CALDERA_TUNE={}: use 0, 1, the path of a file with choices, or a variant of the "
                      "matrix product: {}",
                      value, names_of_variants()));
  }
  return setting;
}

double ProductTuner::steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

ProductTuner::ProductTuner(TuneSetting setting, std::string identity, const std::filesystem::path& directory,
                           Clock clock)
    : setting_(std::move(setting)), clock_(std::move(clock)) {
  const Hash128 digest = shader_digest();
  header_ = fmt::format("{} {:016x} {}", kFormat, digest.lo, identity);
  if (!setting_.choices.empty()) {
    if (!load(setting_.choices)) {
      throw ValueError(fmt::format(
          "CALDERA_TUNE={}: no such file, or none that the tuner of this version has written (its first line "
          "begins with '{}')",
          setting_.choices.string(), std::string_view(header_).substr(0, kFormat.size() + 17)));
    }
  } else if (setting_.measure && !directory.empty()) {
    Hash128 name;
    name.mix(identity);
    file_ = directory / fmt::format("products-{:016x}.txt", name.lo);
    load(file_);
  }
}

std::string ProductTuner::class_of(const ProductShape& s) {
  return fmt::format("{}-{}-{}/b{}/m{}/n{}/k{}/{}{}/s{}{}{}", name(s.type), name(s.a), name(s.b),
                     bucket(s.batches), bucket(s.m), bucket(s.n), bucket(s.k), static_cast<int>(s.a_layout),
                     static_cast<int>(s.b_layout), s.segments, s.epilogue ? "e" : "", s.scaled ? "f" : "");
}

/// nullptr where nothing can be measured.
const ProductVariant* ProductTuner::fastest(const ProductShape& shape, const Capabilities& can,
                                            const ProductVariant& usual, const Time& time,
                                            bool& complete) const {
  complete = true;
  const double begin = clock_();
  const std::optional<double> usual_time = time(usual, std::numeric_limits<double>::infinity());
  if (!usual_time) return nullptr;
  std::vector<const ProductVariant*> candidates;
  bool has_shared = usual.family->shares_tiles();
  for (const ProductVariant& variant : product_variants()) {
    if (&variant == &usual || !variant.family->is_candidate(variant, shape) ||
        !why_not(variant, shape, can).empty())
      continue;
    candidates.push_back(&variant);
    has_shared = has_shared || variant.family->shares_tiles();
  }
  const ProductVariant* best = &usual;
  double best_time = *usual_time * kClearly;
  for (const ProductVariant* variant : candidates) {
    if (has_shared && variant->family->is_last_resort()) continue;
    if (clock_() - begin > kMostSeconds) {
      complete = false;
      break;
    }
    const std::optional<double> seconds = time(*variant, kHopeless * best_time);
    if (!seconds || *seconds >= best_time) continue;
    best = variant;
    best_time = *seconds;
  }
  return best;
}

const ProductVariant& ProductTuner::choose(const ProductShape& shape, const Capabilities& can,
                                           const ProductRates& rates, const Time& time) {
  const auto runs = [&](const ProductVariant& v) { return why_not(v, shape, can).empty(); };
  const ProductVariant& usual = default_product_variant(shape, can, rates);
  if (setting_.pinned != nullptr) return runs(*setting_.pinned) ? *setting_.pinned : usual;
  if (!setting_.measure && setting_.choices.empty()) return usual;

  const std::string key = class_of(shape);
  const std::lock_guard lock(mutex_);
  if (const auto found = choices_.find(key); found != choices_.end() && runs(*found->second))
    return *found->second;
  if (!setting_.measure) return usual;
  if (const auto found = hasty_.find(key); found != hasty_.end() && runs(*found->second))
    return *found->second;
  bool complete = false;
  const ProductVariant* const best = fastest(shape, can, usual, time, complete);
  if (best == nullptr) return usual;
  measured_.fetch_add(1, std::memory_order_relaxed);
  if (!complete) {
    if (hasty_.size() < kMostClasses) hasty_.insert_or_assign(key, best);
    return *best;
  }
  if (choices_.size() < kMostClasses) {
    choices_.insert_or_assign(key, best);
    if (!file_.empty()) {
      load(file_);  // what other processes have found meanwhile
      store();
    }
  }
  return *best;
}

bool ProductTuner::load(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  line.reserve(kLongestLine);
  // A choices file of the user may come from another device; the kernels have to be these.
  const std::string_view header = setting_.choices.empty()
                                      ? std::string_view(header_)
                                      : std::string_view(header_).substr(0, kFormat.size() + 17);
  if (!std::getline(in, line) || !line.starts_with(header)) return false;
  if (setting_.choices.empty() && line != header) return false;
  while (choices_.size() < kMostClasses && std::getline(in, line)) {
    const std::size_t space = line.find(' ');
    if (space == std::string::npos || line.size() > kLongestLine) continue;
    const ProductVariant* const variant = find_product_variant(std::string_view(line).substr(space + 1));
    if (variant != nullptr) choices_.emplace(line.substr(0, space), variant);
  }
  return true;
}

void ProductTuner::store() const {
  std::string text = header_ + '\n';
  for (const auto& [key, variant] : choices_) text += fmt::format("{} {}\n", key, variant->name);
  replace_file(file_, text);
}

}  // namespace caldera::vulkan
