// Checks donations for the plan verifier: from the step that first touches the output on, the input's bytes
// are the output's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/plan/plan.h"
#include "engine/plan/steps/step_form.h"

namespace caldera::verify {

/// Follows the steps of a plan and checks each donation as if every replay made use of it. Throws Fault.
class DonationCheck {
 public:
  explicit DonationCheck(const Plan& plan);

  /// To be called for every step in order. `epoch` counts barriers.
  void step(const Step& step, const std::vector<OperandForm>& forms, std::uint64_t epoch);

 private:
  void take_over(const Donation& donation, const Step& step, const std::vector<OperandForm>& forms,
                 std::uint64_t epoch) const;

  struct Use {
    std::uint64_t last_read = 0;  // epoch in which an earlier step touched it; 0: none
    bool is_touched = false;      // by an earlier step
  };

  const Plan& plan_;
  std::vector<std::vector<std::size_t>> of_;  // donations in which each input and output stands
  std::vector<Use> uses_;                     // of inputs and outputs
};

}  // namespace caldera::verify
