// ServiceSource: the models behind a server, by name.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lm/serve/service/service.h"

namespace caldera::serve {

/// Finds the service that answers a request. May be used from any thread.
class ServiceSource {
 public:
  virtual ~ServiceSource() = default;
  ServiceSource(const ServiceSource&) = delete;
  ServiceSource& operator=(const ServiceSource&) = delete;

  /// Finds the service of a model, or of an adapter, by its name; "" names the first one. It may have to be
  /// loaded first, which takes a while. It lives as long as somebody holds it. Throws ApiError: 404 where
  /// there is none of that name, 503 where there is no room for it now.
  virtual std::shared_ptr<Service> find(const std::string& name) = 0;
  /// The services that are loaded.
  virtual std::vector<std::shared_ptr<Service>> loaded() const = 0;
  /// Names what requests may ask for, what is not loaded included.
  virtual std::vector<std::string> names() const = 0;
  /// Is held by who changes adapters of a service that find() gave, and by who replaces one with its
  /// adapters.
  std::mutex& updates() { return updates_; }
  /// Sums up what the loaded models do.
  BatchStatus status() const {
    BatchStatus sum;
    for (const auto& service : loaded()) {
      const BatchStatus one = service->status();
      sum.running += one.running;
      sum.waiting += one.waiting;
      sum.pages += one.pages;
      sum.pages_in_use += one.pages_in_use;
      sum.cache_bytes += one.cache_bytes;
      sum.reused_tokens += one.reused_tokens;
      sum.drafted_tokens += one.drafted_tokens;
      sum.accepted_tokens += one.accepted_tokens;
      sum.preempted += one.preempted;
      sum.recomputed_tokens += one.recomputed_tokens;
      sum.shifted += one.shifted;
    }
    return sum;
  }

 protected:
  ServiceSource() = default;

 private:
  std::mutex updates_;
};

/// One service, which must outlive this and whoever was given it.
class OneService : public ServiceSource {
 public:
  explicit OneService(Service& service) : service_(std::shared_ptr<Service>(), &service) {}

  std::shared_ptr<Service> find(const std::string& name) override {
    if (!name.empty()) service_->model(name);  // throws for another one
    return service_;
  }
  std::vector<std::shared_ptr<Service>> loaded() const override { return {service_}; }
  std::vector<std::string> names() const override { return service_->model_names(); }

 private:
  std::shared_ptr<Service> service_;
};

}  // namespace caldera::serve
