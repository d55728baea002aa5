#include "engine/plan/verify_donation.h"

#include <fmt/core.h>

#include "engine/plan/kernel/fault.h"

namespace caldera::verify {

DonationCheck::DonationCheck(const Plan& plan) : plan_(plan) {
  const std::int32_t bound = plan.input_count + plan.output_count;
  of_.resize(static_cast<std::size_t>(bound));
  uses_.resize(static_cast<std::size_t>(bound));
  for (std::size_t d = 0; d < plan.donations.size(); ++d) {
    const auto [output, input] = plan.donations[d];
    if (input < 0 || input >= plan.input_count || output < plan.input_count || output >= bound)
      throw Fault{fmt::format("donation {} is not from an input to an output", d)};
    const PlanBuffer& from = plan.buffers[static_cast<std::size_t>(input)];
    const PlanBuffer& to = plan.buffers[static_cast<std::size_t>(output)];
    if (from.bytes != to.bytes) throw Fault{fmt::format("donation {} is between different sizes", d)};
    of_[static_cast<std::size_t>(output)].push_back(d);
    of_[static_cast<std::size_t>(input)].push_back(d);
  }
}

void DonationCheck::step(const Step& step, const std::vector<OperandForm>& forms, std::uint64_t epoch) {
  if (plan_.donations.empty()) return;
  const auto bound = static_cast<std::int32_t>(uses_.size());
  const auto each_buffer = [&](auto visit) {
    for (std::size_t k = 0; k < forms.size(); ++k) {
      const std::int32_t buffer = step.operands[k].buffer;
      if (forms[k].role == OperandRole::index || buffer >= bound) continue;
      visit(static_cast<std::size_t>(buffer));
    }
  };
  each_buffer([&](std::size_t b) {
    for (std::size_t d : of_[b]) {
      const Donation& donation = plan_.donations[d];
      const Use& output = uses_[static_cast<std::size_t>(donation.output)];
      if (donation.input == static_cast<std::int32_t>(b)) {
        if (output.is_touched)
          throw Fault{fmt::format("input {} is read after it was given to output {}", b, donation.output)};
      } else if (!output.is_touched) {
        take_over(donation, step, forms, epoch);
      }
    }
  });
  each_buffer([&](std::size_t b) { uses_[b] = {epoch, true}; });
}

/// The step is the first to touch the output.
void DonationCheck::take_over(const Donation& donation, const Step& step,
                              const std::vector<OperandForm>& forms, std::uint64_t epoch) const {
  if (uses_[static_cast<std::size_t>(donation.input)].last_read == epoch) {
    throw Fault{fmt::format("output {} takes input {}, which no barrier separates from an earlier reader",
                            donation.output, donation.input)};
  }
  for (std::size_t in = 0; in < forms.size(); ++in) {
    if (forms[in].role != OperandRole::read || step.operands[in].buffer != donation.input) continue;
    for (std::size_t out = 0; out < forms.size(); ++out) {
      const Operand& from = step.operands[in];
      const Operand& to = step.operands[out];
      if (forms[out].role == OperandRole::index || to.buffer != donation.output) continue;
      bool same = forms[in].own && forms[out].own && size_of(forms[in].type) == size_of(forms[out].type) &&
                  from.offset == to.offset && from.position < 0 && to.position < 0;
      for (int d = 0; same && d < forms[out].extents.rank(); ++d) {
        same = forms[out].extents[d] <= 1 || from.strides[d] == to.strides[d];
      }
      if (!same) {
        throw Fault{fmt::format("operand {} overwrites elements of input {} that other points read", out,
                                donation.input)};
      }
    }
  }
}

}  // namespace caldera::verify
