// EqualValues: whether two nodes of a program are computed alike. Barriers do not count: a value that is
// computed again behind one is the value.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "engine/compile/program/program.h"

namespace caldera {

class EqualValues {
 public:
  explicit EqualValues(const Program& program) : program_(program) {}

  /// Says whether a and b have equal values because they are the same operations of the same leaves. False
  /// also where the proof would take too many comparisons.
  bool operator()(std::uint32_t a, std::uint32_t b);

 private:
  bool compare(std::uint32_t a, std::uint32_t b, int depth);
  bool is_alike(const Program::Node& a, const Program::Node& b) const;

  const Program& program_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, bool> known_;
  int left_ = 0;  // comparisons
};

}  // namespace caldera
