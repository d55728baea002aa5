// WeightAverage: an exponential moving average of the parameters (Polyak averaging), which often generalises
// better than the last of them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lm/nn/module.h"

namespace caldera {

/// Begins with the parameters as they are; after each step an average becomes decay * average + (1 - decay) *
/// parameter. Averages have the dtype of their parameters. One thread at a time.
class WeightAverage {
 public:
  /// Keeps the pointers of `parameters`. Throws ValueError unless 0 < decay < 1.
  WeightAverage(std::vector<Parameter> parameters, double decay);

  /// Takes in the parameters, lazily: evaluate outputs() with them.
  void update();
  const std::vector<LazyTensor>& outputs() const { return averages_; }

  /// The averages by the parameters' names: a checkpoint saves them.
  std::map<std::string, LazyTensor> state() const;
  /// Goes on from saved averages. Throws ValueError where one is missing, unexpected or unlike its parameter.
  void restore(const std::map<std::string, LazyTensor>& state);

  /// Exchanges parameters and averages: what computes with the model then uses the averages. Called twice it
  /// changes nothing.
  void exchange();

 private:
  std::vector<Parameter> parameters_;
  std::vector<LazyTensor> averages_;
  double decay_;
};

}  // namespace caldera
