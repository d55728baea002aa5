// AdapterBank: several LoRA adapters on one model, of which each row of a batch has its own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lm/adapters/lora.h"

namespace caldera {

class CausalLM;

/// Holds the factors of its adapters one behind the other, A (slots, rank, in) and B (slots, out, rank) of
/// each projection; a batch gathers those of its rows (Chen et al. 2023, "Punica"). Adapters of smaller rank,
/// and projections that an adapter leaves out, have zeros. Not thread-safe; a model has one bank at most.
class AdapterBank {
 public:
  /// An adapter that is loaded, for as long as somebody holds it.
  class Adapter {
   public:
    std::int32_t slot() const { return slot_; }

   private:
    friend class AdapterBank;
    AdapterFactors files_;
    std::map<std::string, LoRAOptions> modules_;  // by path
    std::int32_t slot_ = 0;
  };
  using AdapterPtr = std::shared_ptr<const Adapter>;

  /// Wraps the model's projections; the destructor gives them back as they were. Training does not go through
  /// a bank.
  explicit AdapterBank(CausalLM& model);
  ~AdapterBank();
  AdapterBank(const AdapterBank&) = delete;
  AdapterBank& operator=(const AdapterBank&) = delete;

  /// Loads an adapter folder. Throws FileError as caldera::load_adapter, and for DoRA and
  /// parameters of the model that the adapter has itself; where anything fails,
  /// the bank is as it was. A larger rank, or more adapters than ever before (by powers of two), are new
  /// plans.
  AdapterPtr load(const std::filesystem::path& dir);
  /// The slots of the rows of the next forward calls; 0 is no adapter. Where all are 0 the model is computed
  /// as it was.
  void select(std::span<const std::int32_t> slots);

 private:
  class BankedLinear;
  struct Rows;

  void rebuild(const std::vector<std::weak_ptr<const Adapter>>& slots);

  CausalLM& model_;
  std::shared_ptr<Rows> rows_;
  std::vector<std::weak_ptr<const Adapter>> slots_;  // slot i + 1
};

}  // namespace caldera
