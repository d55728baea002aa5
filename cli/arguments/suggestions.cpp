#include "cli/arguments/suggestions.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <utility>

namespace caldera::cli {
namespace {

struct Synonym {
  std::string_view theirs;
  std::string_view ours;
};

// Several may have one name of theirs: the first that the command has is meant.
constexpr std::array kSynonyms{
    Synonym{"lr", "learning-rate"},
    Synonym{"iters", "iterations"},
    Synonym{"steps", "iterations"},
    Synonym{"max-steps", "iterations"},
    Synonym{"num-epochs", "epochs"},
    Synonym{"num-train-epochs", "epochs"},
    Synonym{"r", "rank"},
    Synonym{"lora-r", "rank"},
    Synonym{"lora-rank", "rank"},
    Synonym{"lora-alpha", "alpha"},
    Synonym{"lora-dropout", "dropout"},
    Synonym{"lora-modules", "target-modules"},
    Synonym{"lora-target-modules", "target-modules"},
    Synonym{"max-seq-length", "seq-len"},
    Synonym{"max-seq-len", "seq-len"},
    Synonym{"max-length", "seq-len"},
    Synonym{"sequence-len", "seq-len"},
    Synonym{"micro-batch-size", "batch-size"},
    Synonym{"per-device-train-batch-size", "batch-size"},
    Synonym{"grad-accumulation-steps", "grad-accumulation"},
    Synonym{"gradient-accumulation-steps", "grad-accumulation"},
    Synonym{"lr-scheduler", "schedule"},
    Synonym{"lr-scheduler-type", "schedule"},
    Synonym{"lr-schedule", "schedule"},
    Synonym{"warmup-steps", "warmup"},
    Synonym{"optim", "optimizer"},
    Synonym{"clip-grad", "max-grad-norm"},
    Synonym{"steps-per-eval", "val-every"},
    Synonym{"eval-steps", "val-every"},
    Synonym{"save-steps", "save-every"},
    Synonym{"save-total-limit", "keep"},
    Synonym{"checkpoint-save-steps", "save-every"},
    Synonym{"load-best-model-at-end", "best"},
    Synonym{"early-stopping-patience", "patience"},
    Synonym{"resume-from", "resume"},
    Synonym{"resume-from-checkpoint", "resume"},
    Synonym{"resume-adapter-file", "resume"},
    Synonym{"auto-resume", "resume"},
    Synonym{"output-dir", "out"},
    Synonym{"output", "out"},
    Synonym{"adapter-path", "out"},
    Synonym{"adapter-path", "adapter"},
    Synonym{"lora", "adapter"},
    Synonym{"dataset", "data"},
    Synonym{"temp", "temperature"},
    Synonym{"max-new-tokens", "max-tokens"},
    Synonym{"n-predict", "max-tokens"},
    Synonym{"repeat-penalty", "repetition-penalty"},
};

/// Levenshtein's distance, in which exchanging two neighbours counts as one change.
std::size_t changes_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before;
  std::vector<std::size_t> last(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> row(b.size() + 1, i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = std::exchange(last, std::move(row));
  }
  return last.back();
}

}  // namespace

std::string suggestion(std::string_view name, const std::vector<std::string>& names) {
  std::string asked(name);
  std::ranges::replace(asked, '_', '-');
  const auto has = [&](std::string_view known) { return std::ranges::find(names, known) != names.end(); };
  if (has(asked)) return asked;
  for (const Synonym& synonym : kSynonyms)
    if (synonym.theirs == asked && has(synonym.ours)) return std::string(synonym.ours);
  std::string nearest;
  std::size_t fewest = asked.size() < 6 ? 2 : 3;  // more changes than that make another word
  for (const std::string& known : names) {
    const std::size_t changes = changes_between(asked, known);
    if (changes < fewest) {
      fewest = changes;
      nearest = known;
    }
  }
  return nearest;
}

}  // namespace caldera::cli
