#include "lm/tokenizers/pre_tokenizers/splitter.h"

namespace caldera::detail {

void Splitter::part(std::size_t begin, std::size_t end, bool is_match) {
  const bool after_match = last_is_match_;
  last_is_match_ = is_match;
  switch (behavior_) {
    case SplitBehavior::removed:
      if (!is_match) give(begin, end);
      return;
    case SplitBehavior::isolated:
      return give(begin, end);
    case SplitBehavior::contiguous:
      if (pending_ && is_match == after_match) {
        end_ = end;
      } else {
        hold(begin, end);
      }
      return;
    case SplitBehavior::merged_with_previous:
      if (pending_ && is_match && !after_match) {
        end_ = end;
      } else {
        hold(begin, end);
      }
      return;
    case SplitBehavior::merged_with_next:
      if (pending_ && !is_match && after_match) {
        end_ = end;
      } else {
        hold(begin, end);
      }
      return;
  }
}

}  // namespace caldera::detail
