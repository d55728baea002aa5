// Job: one replay of a plan with everything it needs. Internal to the runtime.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <vector>

#include "engine/base/small_allocator.h"
#include "engine/device/backend.h"
#include "engine/graph/node.h"
#include "engine/runtime/capture/settlement.h"

namespace caldera {

struct RunRecord;

/// Bytes to bring from a block of one device to the start of a block of another. Keeps both blocks.
struct DeviceCopy {
  std::shared_ptr<Backend> from_backend;
  StoragePtr from;
  std::size_t from_offset = 0;
  Backend* to_backend = nullptr;  // whose stream runs the copy
  StoragePtr to;
  std::size_t bytes = 0;
};

/// Copies, then one replay of a plan: everything it needs, held until it is done.
struct Job {
  std::vector<DeviceCopy> copies;          // from other devices
  std::shared_ptr<Executable> executable;  // null where there are only copies
  Bindings bindings;
  SmallList<StoragePtr> storages;               // of all bindings
  std::vector<std::shared_ptr<Event>> depends;  // of inputs that may still fail, or come from other devices
  std::shared_ptr<Event> done;
  /// Events of each output, in order, where some may be there though others fail; otherwise empty: `done`
  /// tells.
  std::vector<std::shared_ptr<Event>> output_events;
  Settlement settlement;              // of the outputs; its values are in the order of output_events
  std::shared_ptr<RunRecord> record;  // null unless someone records (profile_hooks.h)

  const std::shared_ptr<Event>& event_of(std::size_t output) const {
    return output_events.empty() ? done : output_events[output];
  }
  /// Whether `event` is one of the job's.
  bool sets(const std::shared_ptr<Event>& event) const;
  /// Lets go of everything, settles the outputs, and tells who waits. `error`: null if all went well.
  /// `has_begun`: memory may have been written.
  void end(std::exception_ptr error, bool has_begun);
  /// Makes a job that has ended, or that was never filled, as a new one, which has the memory of its lists.
  /// False of any other, and of one whose lists are not worth keeping.
  bool renew() noexcept;
};

/// Drops the plans of the device that only the cache holds: they keep memory of it (argument tables).
void drop_idle_plans(Backend& backend);

/// Backend::submit. When the device is out of memory for the plan's intermediates: drops the plans that only
/// the cache holds and tries again. Throws OutOfMemoryError that names the plan's steps and the operation
/// with the largest intermediate.
Ticket submit_job(Backend& backend, const Job& job);

}  // namespace caldera
