#include "engine/plan/steps/sort.h"

#include <limits>

#include "engine/plan/kernel/fault.h"
#include "engine/plan/steps/step_form.h"

namespace caldera {

void SortStep::check(verify::StepForm& form) const {
  using verify::Fault;
  form.check_rank(3);
  if (form.rank() != 3) throw Fault{"not the dimensions rows, N, K"};
  const Shape& dims = form.step().dims;
  if (form.step().dtype != DType::i32) throw Fault{"positions of another type than int32"};
  if (dims[1] > std::numeric_limits<std::int32_t>::max()) throw Fault{"rows longer than int32 counts"};
  if (first < 0 || first > dims[1] || dims[2] > dims[1] - first) throw Fault{"places beyond the row"};
  form.read(of, form.inner(3) | form.inner(2), form.all());
  form.write(DType::i32, form.inner(3) | form.inner(1));
}

}  // namespace caldera
