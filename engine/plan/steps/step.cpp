#include "engine/plan/steps/step.h"

#include <limits>

namespace caldera {
namespace {

template <class Work>
inline constexpr bool kAllAreKinds = false;
template <class... Kinds>
inline constexpr bool kAllAreKinds<std::variant<Kinds...>> = (StepKind<Kinds> && ...);
static_assert(kAllAreKinds<Step::Work>, "a kind of step does not answer all that step_kind.h asks");

}  // namespace

std::string_view Step::kind() const {
  return visit([](const auto& kind) { return kind.kind(); });
}

std::string_view Step::form() const {
  return visit([](const auto& kind) { return kind.form(); });
}

int Step::output_count() const {
  return visit([](const auto& kind) { return kind.output_count(); });
}

int Step::named_operands() const {
  return visit([](const auto& kind) { return kind.named_operands(); });
}

// Each of the following asks the kind where it answers, and else says what step_kind.h says.

Shape Step::operand_dims(std::size_t k) const {
  return visit([&](const auto& kind) {
    if constexpr (requires { kind.operand_dims(*this, k); }) return kind.operand_dims(*this, k);
    return dims;
  });
}

std::optional<IndexedAxis> Step::indexed_axis(std::size_t k) const {
  return visit([&](const auto& kind) -> std::optional<IndexedAxis> {
    if constexpr (requires { kind.indexed_axis(*this, k); }) return kind.indexed_axis(*this, k);
    return std::nullopt;
  });
}

std::int64_t Step::most_elements(std::size_t k) const {
  return visit([&](const auto& kind) {
    if constexpr (requires { kind.most_elements(*this, k); }) return kind.most_elements(*this, k);
    return std::numeric_limits<std::int64_t>::max();
  });
}

bool Step::may_interleave(std::size_t k) const {
  return visit([&](const auto& kind) {
    if constexpr (requires { kind.may_interleave(k); }) return kind.may_interleave(k);
    return true;
  });
}

bool Step::accumulates() const {
  return visit([](const auto& kind) {
    if constexpr (requires { kind.accumulates(); }) return kind.accumulates();
    return false;
  });
}

bool Step::reads_in_place(std::size_t k) const {
  return visit([&](const auto& kind) {
    if constexpr (requires { kind.reads_in_place(k); }) return kind.reads_in_place(k);
    return false;
  });
}

std::vector<StepKernel> Step::kernels() const {
  return visit([](const auto& kind) -> std::vector<StepKernel> {
    if constexpr (requires { kind.kernels(); }) return kind.kernels();
    return {};
  });
}

std::int64_t Step::own_operations() const {
  return visit([](const auto& kind) {
    if constexpr (requires { kind.own_operations(); }) return kind.own_operations();
    return std::int64_t{1};
  });
}

std::size_t Step::heap_bytes() const {
  return visit([](const auto& kind) {
    if constexpr (requires { kind.heap_bytes(); }) return kind.heap_bytes();
    return std::size_t{0};
  });
}

void Step::check_values() const {
  visit([&](const auto& kind) {
    if constexpr (requires { kind.check_values(*this); }) kind.check_values(*this);
  });
}

std::int64_t Step::flops() const {
  return visit([&](const auto& kind) { return kind.flops(*this); });
}

std::string Step::name() const {
  const std::string own = visit([](const auto& kind) { return std::string(kind.name()); });
  return label.empty() || label == own ? own : label + ": " + own;
}

bool moves_only(const Step& step) {
  const auto* region = step.if_a<RegionStep>();
  if (region == nullptr || region->kernel == nullptr || step.operands.size() != 2) return false;
  const Kernel& kernel = *region->kernel;
  return kernel.inputs.size() == 1 && kernel.outputs.size() == 1 && !kernel.reduce &&
         kernel.code.size() == 1 && kernel.code[0].op == ScalarOp::load &&
         kernel.inputs[0] == kernel.outputs[0].type && step.operands[0].position < 0 &&
         step.operands[1].position < 0;
}

bool is_copy(const Step& step) {
  if (!moves_only(step)) return false;
  const Operand& from = step.operands[0];
  const Operand& to = step.operands[1];
  return from.offset == to.offset && from.strides == to.strides;
}

}  // namespace caldera
