#include "engine/survey/code_stretch.h"

namespace caldera {

CodeStretch& CodeStretch::add(const CodeStretch& other, double times) {
  instructions += times * other.instructions;
  issued += times * other.issued;
  loads += times * other.loads;
  accesses += times * other.accesses;
  f32_flops += times * other.f32_flops;
  matrix_flops += times * other.matrix_flops;
  shared_bytes += times * other.shared_bytes;
  return *this;
}

}  // namespace caldera
