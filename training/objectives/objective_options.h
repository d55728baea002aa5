// ObjectiveOptions: which objective, and its numbers and words.
#pragma once

#include <limits>
#include <map>
#include <string>
#include <vector>

namespace caldera {

struct ObjectiveOptions {
  std::string name = "sft";
  std::map<std::string, double> more;        ///< numbers that only some objectives have, such as "beta"
  std::map<std::string, std::string> words;  ///< and words, such as "loss_type"
};

/// Describes one option of an objective: a number of a domain, one of some words, or any text.
struct ObjectiveOption {
  enum class Kind { number, word, text };

  std::string name;  ///< "label_smoothing"; the program's flag is --label-smoothing
  std::string help;  ///< a phrase that begins with a capital
  Kind kind = Kind::number;
  double otherwise = 0;  ///< the number where it is not given
  double low = 0;        ///< the least number
  double high = std::numeric_limits<double>::infinity();
  bool low_is_out = false;              ///< `low` itself is refused
  bool whole = false;                   ///< only whole numbers
  std::vector<std::string> words = {};  ///< of Kind::word: those it may be; the first where it is not given
};

}  // namespace caldera
