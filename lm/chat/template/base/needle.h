// Finds a text in others in time linear in their length, whatever the two are.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lm/chat/template/base/budget.h"

namespace caldera::chat {

class Needle {
 public:
  explicit Needle(std::string_view wanted);

  /// Byte at which the first or last occurrence begins; npos if there is none. Counts steps for what it looks
  /// through.
  std::size_t find(std::string_view in) const;
  std::size_t find_last(std::string_view in) const;
  std::size_t size() const { return wanted_.size(); }
  bool empty() const { return wanted_.empty(); }

 private:
  std::string wanted_;
  Charge charge_;
  /// Holds for each beginning of the text (and of the text reversed) the longest proper one that is also its
  /// end. Empty for short texts, where comparing at every place is quicker.
  std::vector<std::size_t> borders_, reversed_borders_;
};

}  // namespace caldera::chat
