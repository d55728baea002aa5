#include "training/vision/data/data_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/base/error.h"

namespace caldera::vision {
namespace {

/// Marsaglia and Tsang's method (2000), of a shape below 1 by the power of a uniform draw.
double draw_gamma(double shape, rl::Random& random) {
  if (shape < 1) return draw_gamma(shape + 1, random) * std::pow(1 - random.uniform(), 1 / shape);
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = random.normal(), v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(1 - random.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

/// A batch on the host.
struct HostBatch {
  Shape shape;
  std::vector<float> pixels;
  std::vector<std::int32_t> labels, other_labels;
  double share = 1;
};

/// Blends each image with the one that stands as far from the other end.
void mix(HostBatch& batch, double alpha, rl::Random& random) {
  const double a = draw_gamma(alpha, random), b = draw_gamma(alpha, random);
  batch.share = a + b > 0 ? a / (a + b) : 1;
  const std::size_t count = batch.labels.size(), size = batch.pixels.size() / count;
  const auto share = static_cast<float>(batch.share);
  std::vector<float> mixed(batch.pixels.size());
  for (std::size_t i = 0; i < count; ++i) {
    const float *own = batch.pixels.data() + i * size, *other = batch.pixels.data() + (count - 1 - i) * size;
    for (std::size_t k = 0; k < size; ++k) mixed[i * size + k] = share * own[k] + (1 - share) * other[k];
  }
  batch.pixels = std::move(mixed);
  batch.other_labels.assign(batch.labels.rbegin(), batch.labels.rend());
}

HostBatch make_batch(const ImageDataset& data, const DataLoaderOptions& options, std::int64_t epoch,
                     std::int64_t number, std::span<const std::int64_t> indices) {
  HostBatch batch;
  const rl::Random streams =
      rl::Random::stream(options.seed ^ 0x696d61676573U, static_cast<std::uint64_t>(epoch));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    Image image = data.image(indices[i]);
    const std::int64_t place = number * options.batch_size + static_cast<std::int64_t>(i);
    rl::Random random = rl::Random::stream(streams.state(), static_cast<std::uint64_t>(2 * place));
    if (options.transform) options.transform(image, random);
    const Shape shape{static_cast<std::int64_t>(indices.size()), image.channels, image.height, image.width};
    if (i == 0) {
      batch.shape = shape;
      batch.pixels.reserve(image.pixels.size() * indices.size());
    } else if (batch.shape != shape) {
      throw ShapeError(
          fmt::format("image {} is {} x {} x {}, the first of its batch {} x {} x {}: resize or "
                      "crop them to one size",
                      indices[i], image.channels, image.height, image.width, batch.shape[1], batch.shape[2],
                      batch.shape[3]));
    }
    batch.pixels.insert(batch.pixels.end(), image.pixels.begin(), image.pixels.end());
    batch.labels.push_back(static_cast<std::int32_t>(data.label(indices[i])));
  }
  if (options.mixup > 0) {
    rl::Random random = rl::Random::stream(streams.state(), static_cast<std::uint64_t>(2 * number + 1));
    mix(batch, options.mixup, random);
  }
  return batch;
}

ImageBatch on_device(const HostBatch& host, Device device) {
  const Shape count{static_cast<std::int64_t>(host.labels.size())};
  ImageBatch batch{LazyTensor::from_vector(host.pixels, host.shape, device),
                   LazyTensor::from_vector(host.labels, count, device),
                   {},
                   host.share};
  if (!host.other_labels.empty())
    batch.other_labels = LazyTensor::from_vector(host.other_labels, count, device);
  return batch;
}

}  // namespace

/// One pass over the images: the order, and the threads that work at it.
class DataLoader::Epoch {
 public:
  Epoch(const ImageDataset& data, const DataLoaderOptions& options, std::int64_t epoch, std::int64_t first,
        std::vector<std::int64_t> order, std::int64_t batches)
      : data_(data),
        options_(options),
        epoch_(epoch),
        order_(std::move(order)),
        batches_(batches),
        begun_(first),
        taken_(first) {
    for (int i = 0; i < options.workers; ++i) workers_.emplace_back([this] { work(); });
  }
  ~Epoch() {
    {
      const std::scoped_lock lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }
  Epoch(const Epoch&) = delete;
  Epoch& operator=(const Epoch&) = delete;

  std::optional<HostBatch> next() {
    if (taken_ >= batches_) return std::nullopt;
    const auto begin = std::chrono::steady_clock::now();
    const auto add_time = [&] {
      waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    if (workers_.empty()) {
      HostBatch batch = make(taken_++);
      add_time();
      return batch;
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_.contains(taken_) || failed_.contains(taken_); });
    add_time();
    if (const auto failure = failed_.find(taken_); failure != failed_.end())
      std::rethrow_exception(failure->second);
    HostBatch batch = std::move(done_.extract(taken_++).mapped());
    lock.unlock();
    changed_.notify_all();
    return batch;
  }
  double waited() const { return waited_; }

 private:
  HostBatch make(std::int64_t number) const {
    const auto begin = static_cast<std::size_t>(number * options_.batch_size);
    const std::size_t count = std::min(static_cast<std::size_t>(options_.batch_size), order_.size() - begin);
    return make_batch(data_, options_, epoch_, number, std::span(order_).subspan(begin, count));
  }

  void work() {
    const std::int64_t ahead = static_cast<std::int64_t>(options_.workers) * options_.prefetch;
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopped_ || begun_ >= batches_ || begun_ < taken_ + ahead; });
      if (stopped_ || begun_ >= batches_) return;
      const std::int64_t number = begun_++;
      lock.unlock();
      try {
        HostBatch batch = make(number);
        lock.lock();
        done_.emplace(number, std::move(batch));
      } catch (...) {  // goes to the thread that asks for this batch
        if (!lock.owns_lock()) lock.lock();
        failed_.emplace(number, std::current_exception());
      }
      lock.unlock();
      changed_.notify_all();
    }
  }

  const ImageDataset& data_;
  const DataLoaderOptions& options_;
  std::int64_t epoch_;
  std::vector<std::int64_t> order_;
  std::int64_t batches_, begun_, taken_;
  std::map<std::int64_t, HostBatch> done_;
  std::map<std::int64_t, std::exception_ptr> failed_;
  bool stopped_ = false;
  double waited_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::thread> workers_;
};

struct DataLoader::State {
  ImageDatasetPtr data;
  DataLoaderOptions options;
  Device device;
  std::int64_t images = 0;         // of an epoch
  std::unique_ptr<Epoch> epoch{};  // after the rest, whose threads read it
};

DataLoader::DataLoader(ImageDatasetPtr data, DataLoaderOptions options) {
  if (!data) throw ValueError("DataLoader: no dataset");
  if (options.batch_size < 1 || options.workers < 0 || options.prefetch < 1 || !(options.mixup >= 0))
    throw ValueError(fmt::format("DataLoader: batch size {}, {} workers, {} batches ahead, mixup {}",
                                 options.batch_size, options.workers, options.prefetch, options.mixup));
  if (!options.sampler)
    options.sampler = options.shuffle ? shuffled(data->size(), options.seed) : in_order(data->size());
  const Device device = options.device.value_or(default_device());
  const auto images = static_cast<std::int64_t>(options.sampler(0).size());
  state_ = std::make_unique<State>(State{std::move(data), std::move(options), device, images});
  if (batches() < 1)
    throw ValueError(
        fmt::format("DataLoader: {} images make no batch of {}", images, state_->options.batch_size));
}
DataLoader::~DataLoader() = default;
DataLoader::DataLoader(DataLoader&&) noexcept = default;
DataLoader& DataLoader::operator=(DataLoader&&) noexcept = default;

std::int64_t DataLoader::batches() const {
  const std::int64_t size = state_->options.batch_size;
  return state_->options.drop_last ? state_->images / size : (state_->images + size - 1) / size;
}

void DataLoader::begin(std::int64_t epoch, std::int64_t first) {
  state_->epoch.reset();
  state_->epoch = std::make_unique<Epoch>(*state_->data, state_->options, epoch, first,
                                          state_->options.sampler(epoch), batches());
}

std::optional<ImageBatch> DataLoader::next() {
  if (!state_->epoch) begin(0);
  const std::optional<HostBatch> batch = state_->epoch->next();
  if (!batch) return std::nullopt;
  return on_device(*batch, state_->device);
}

double DataLoader::waited_seconds() const { return state_->epoch ? state_->epoch->waited() : 0; }
const ImageDataset& DataLoader::data() const { return *state_->data; }
const DataLoaderOptions& DataLoader::options() const { return state_->options; }

}  // namespace caldera::vision
