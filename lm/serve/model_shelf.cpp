#include "lm/serve/model_shelf.h"

#include <fmt/format.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>

#include "engine/base/error.h"
#include "lm/base/file_identity.h"

namespace caldera::serve {
namespace {

// A request holds its model until its last byte is sent: its client may be here with another one before that
// ends.
constexpr std::chrono::seconds kPatience{1};

/// What a request holds: the service, and with it the model.
std::shared_ptr<Service> service_of(const std::shared_ptr<LoadedModel>& model) {
  return {model, &model->service()};
}

/// Closes a model, unless a request has it still, and gives the system what its many small pieces had: the
/// allocator would keep that among pieces of others.
void close(std::shared_ptr<LoadedModel>&& model) {
  model.reset();
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace

ModelShelf::ModelShelf(const Names& models, ModelServerOptions options, std::size_t most)
    : options_(std::move(options)), most_(most) {
  if (most_ == 1 && models.size() > 1)
    throw ValueError("one model may be open: the first stays so, and no other could be opened; let 2 be");
  for (const auto& [name, path] : models) {
    Entry entry;
    entry.name = name;
    entry.path = path;
    entries_.push_back(std::move(entry));
  }
  Entry& first = entries_.front();
  first.identity = identity_of(first);
  first.model = std::make_shared<LoadedModel>(first.path, options_of(first, true));
  first.name = first.model->served().name;
  first.used = ++clock_;
  for (const auto& [name, folder] : options_.adapters) adapter_files_[name] = file_identity(folder);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const std::vector<std::string> adapters = first.model->served().adapters;
    for (std::size_t k = 0; k < i; ++k)
      if (entries_[i].name == entries_[k].name)
        throw ValueError(fmt::format("the name '{}' is that of two models", entries_[i].name));
    if (std::ranges::count(adapters, entries_[i].name) > 0)
      throw ValueError(fmt::format("the name '{}' is that of a model and of an adapter", entries_[i].name));
  }
}

/// Adapters and a cache of prompts are the first one's.
ModelServerOptions ModelShelf::options_of(const Entry& entry, bool is_first) const {
  ModelServerOptions options = options_;
  options.name = entry.name;
  if (!is_first) options.adapters.clear();
  return options;
}

void ModelShelf::note(const std::string& line) const {
  if (options_.http.log) options_.http.log(line);
}

std::shared_ptr<Service> ModelShelf::find(const std::string& name) {
  std::unique_lock lock(mutex_);
  auto found = std::ranges::find_if(entries_, [&](const Entry& e) { return name.empty() || e.name == name; });
  if (found == entries_.end()) {
    // An adapter, or nothing, which the service says.
    entries_.front().used = ++clock_;
    std::shared_ptr<Service> service = service_of(entries_.front().model);
    lock.unlock();
    service->model(name);
    return service;
  }
  Entry& entry = *found;
  const Clock::time_point deadline = Clock::now() + kPatience;
  do {
    changed_.wait(lock, [&] { return !entry.opening; });
    entry.used = ++clock_;
    if (entry.model != nullptr) return service_of(entry.model);
  } while (!has_room(lock, deadline));
  entry.opening = true;
  lock.unlock();
  std::shared_ptr<LoadedModel> model;
  std::string problem, identity;
  bool again = true;
  while (std::exchange(again, false)) {
    try {
      identity = identity_of(entry);
      note(fmt::format("opening {} ({})", entry.name, entry.path.string()));
      model = std::make_shared<LoadedModel>(entry.path, options_of(entry, false));
    } catch (const OutOfMemoryError& error) {
      problem = error.what();
      lock.lock();
      again = close_oldest(lock);
      lock.unlock();
    } catch (const std::exception& error) {
      problem = error.what();
    }
  }
  lock.lock();
  entry.opening = false;
  entry.model = std::move(model);
  entry.identity = std::move(identity);
  changed_.notify_all();
  if (entry.model == nullptr) {
    note(fmt::format("{} cannot be opened: {}", entry.name, problem));
    throw server_error(fmt::format("the model '{}' cannot be opened; the server's log says why", entry.name));
  }
  return service_of(entry.model);
}

/// Whether one more model may be opened now. Else it closes one that nobody uses, or waits a little for that:
/// what happened meanwhile is to be looked at again.
bool ModelShelf::has_room(std::unique_lock<std::mutex>& lock, Clock::time_point deadline) {
  const auto open =
      std::ranges::count_if(entries_, [](const Entry& e) { return e.model != nullptr || e.opening; });
  if (most_ == 0 || static_cast<std::size_t>(open) < most_) return true;
  if (close_oldest(lock)) return false;
  if (Clock::now() >= deadline)
    throw unavailable("as many models as there may be are at work; try again later");
  changed_.wait_for(lock, std::chrono::milliseconds(10));
  return false;
}

/// Closes the model that was not used for longest, of those that nobody uses; false where there is none. The
/// first stays: adapters are its own.
bool ModelShelf::close_oldest(std::unique_lock<std::mutex>& lock) {
  Entry* oldest = nullptr;
  for (std::size_t i = 1; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    if (entry.model == nullptr || entry.model.use_count() > 1) continue;
    if (oldest == nullptr || entry.used < oldest->used) oldest = &entry;
  }
  if (oldest == nullptr) return false;
  note(fmt::format("closing {}", oldest->name));
  std::shared_ptr<LoadedModel> closed = std::exchange(oldest->model, nullptr);
  lock.unlock();
  // Its memory is given back before another one takes some.
  close(std::move(closed));
  lock.lock();
  return true;
}

std::string ModelShelf::identity_of(const Entry& entry) const { return file_identity(entry.path); }

std::vector<std::string> ModelShelf::reload() {
  std::vector<std::string> told;
  for (std::size_t i = 0; i < entries_.size(); ++i) reopen(i, told);
  const std::shared_ptr<Service> first = find(entries_.front().name);
  if (first->generates()) reload_adapters(*first, told);
  return told;
}

/// Opens a model again that is open, where its files have changed.
void ModelShelf::reopen(std::size_t index, std::vector<std::string>& told) {
  Entry& entry = entries_[index];
  std::shared_ptr<LoadedModel> old;
  std::string before;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !entry.opening; });
    old = entry.model;
    before = entry.identity;
  }
  if (old == nullptr) return;
  std::string line = fmt::format("{} opened again from {}", entry.name, entry.path.string());
  try {
    std::string identity = identity_of(entry);
    if (identity == before) return;
    // Adapters that a request has unloaded stay away, whether their files are still there or not.
    const auto serves = [&old](const std::string& name) {
      return std::ranges::count(old->service().model_names(), name) > 0;
    };
    ModelServerOptions options = options_of(entry, index == 0);
    std::erase_if(options.adapters, [&](const auto& adapter) { return !serves(adapter.first); });
    auto model = std::make_shared<LoadedModel>(entry.path, options);
    const std::lock_guard no_changes(updates());  // between this and the other model's first request
    for (const auto& adapter : options.adapters)
      if (!serves(adapter.first)) model->service().unload_adapter(adapter.first);
    for (const auto& [name, folder] : old->service().loaded_adapters())
      model->service().load_adapter(name, folder, true);
    const std::lock_guard lock(mutex_);
    // It may have been closed meanwhile, and opened again.
    if (entry.model == old) {
      entry.model = std::move(model);
      entry.identity = std::move(identity);
    }
  } catch (const std::exception& error) {
    line = fmt::format("{} stays as it was: {}", entry.name, error.what());
  }
  told.push_back(std::move(line));
  close(std::move(old));
}

/// Loads those that the first model began with again, where their files have changed.
void ModelShelf::reload_adapters(Service& service, std::vector<std::string>& told) {
  const std::lock_guard no_changes(updates());
  const std::vector<std::string> served = service.model_names();
  for (const auto& [name, folder] : options_.adapters) {
    if (std::ranges::count(served, name) == 0) continue;  // a request has unloaded it
    std::string line = fmt::format("adapter {} loaded again from {}", name, folder.string());
    try {
      std::string identity = file_identity(folder);
      if (identity == adapter_files_[name]) continue;
      service.load_adapter(name, folder, true);
      adapter_files_[name] = std::move(identity);
    } catch (const std::exception& error) {
      line = fmt::format("adapter {} stays as it was: {}", name, error.what());
    }
    told.push_back(std::move(line));
  }
}

std::shared_ptr<const LoadedModel> ModelShelf::first() const {
  const std::lock_guard lock(mutex_);
  return entries_.front().model;
}

std::vector<std::shared_ptr<Service>> ModelShelf::loaded() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Service>> services;
  for (const Entry& entry : entries_)
    if (entry.model != nullptr) services.push_back(service_of(entry.model));
  return services;
}

std::vector<std::string> ModelShelf::names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const Entry& entry : entries_) {
    if (entry.model == nullptr)
      names.push_back(entry.name);
    else
      for (const std::string& name : entry.model->service().model_names()) names.push_back(name);
  }
  return names;
}

}  // namespace caldera::serve
