#include "lm/serve/http/answers.h"

#include <chrono>

#include "lm/serve/http/connection.h"
#include "lm/serve/protocol/messages_request.h"
#include "lm/serve/service/message_writer.h"

namespace caldera::serve {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kLook = 100ms;     // how soon a client that has left is noticed
constexpr auto kKeepAlive = 10s;  // silence after which a stream gets a comment, so that proxies keep it
constexpr int kClientLeft = 499;  // nginx's, for the log: nobody receives it

void client_left(httplib::Response& response, RequestLog& log) {
  log.disconnected();
  response.status = kClientLeft;
  log.status(kClientLeft);
  response.set_content("", "text/plain");
}

ApiError timed_out() { return {504, "timeout_error", "the answer took too long", {}, "timeout"}; }

}  // namespace

/// Holds a request's place among those that are answered at once.
class Answers::Ticket {
 public:
  Ticket(Metrics& metrics, std::int64_t most) : metrics_(metrics) {
    if (metrics_.add_active(1) <= most) return;
    metrics_.add_active(-1);
    throw too_busy("the server is busy: it answers as many requests as it may; try again later");
  }
  ~Ticket() { metrics_.add_active(-1); }
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;

 private:
  Metrics& metrics_;
};

/// A stream of events while it is sent.
class Answers::Stream {
 public:
  Stream(const std::atomic<bool>& cancelled, std::shared_ptr<Job> job, std::unique_ptr<AnswerWriter> writer,
         std::shared_ptr<RequestLog> log, std::shared_ptr<Ticket> ticket, int seconds)
      : cancelled_(cancelled),
        job_(std::move(job)),
        writer_(std::move(writer)),
        log_(std::move(log)),
        ticket_(std::move(ticket)),
        deadline_(Clock::now() + std::chrono::seconds(seconds)) {}

  /// Sends what is new. Returns false where the connection is of no more use.
  bool send(httplib::DataSink& sink) {
    const std::vector<Delta> deltas = job_->take(kLook);
    if (client_.left()) return leave();
    if (cancelled_ || Clock::now() > deadline_) job_->cancel();
    std::string out;
    for (const Delta& delta : deltas) {
      if (!delta.shows() && !delta.ends() && delta.tokens.empty()) continue;
      out += writer_->events(delta);
      if (delta.shows()) log_->first_token();
      if (!delta.finish.empty()) log_->end(delta.finish);
      if (!delta.error.empty()) log_->end(delta.error);
      if (delta.cancelled) log_->end("cancelled");
    }
    const bool done = job_->done();
    if (done) out += writer_->end(job_->usage());
    if (out.empty() && Clock::now() > written_ + kKeepAlive) out = ": still here\n\n";
    if (!out.empty()) {
      if (!sink.write(out.data(), out.size())) return leave();
      written_ = Clock::now();
    }
    log_->usage(job_->usage());
    if (done) sink.done();
    return true;
  }

 private:
  bool leave() {
    log_->disconnected();
    job_->cancel();
    return false;
  }

  const std::atomic<bool>& cancelled_;
  std::shared_ptr<Job> job_;
  std::unique_ptr<AnswerWriter> writer_;
  std::shared_ptr<RequestLog> log_;
  std::shared_ptr<Ticket> ticket_;
  const Connection& client_ = Connection::current();
  Clock::time_point deadline_;
  Clock::time_point written_ = Clock::now();
};

void Answers::answer(Endpoint endpoint, const std::string& body, httplib::Response& response,
                     const std::shared_ptr<RequestLog>& log) {
  if (closed_) throw unavailable("the server stops");
  const Json document = parse_body(body, service_.limits().max_depth);
  const ServeLimits& limits = service_.limits();
  if (endpoint == Endpoint::embeddings)
    return embeddings(read_embedding_request(document, limits), response, log);
  if (const std::optional<Json> reply = about_tokens(endpoint, document)) {
    log->status(200);
    response.status = 200;
    response.set_content(dump(*reply), "application/json");
    return;
  }
  std::shared_ptr<Ticket> ticket;
  std::shared_ptr<Job> job;
  CompletionOptions options;
  const auto begin = [&](auto parsed) {
    ticket = std::make_shared<Ticket>(metrics_, limits.max_clients);
    options = parsed.options;
    job = service_.start(parsed);
  };
  if (endpoint == Endpoint::completions)
    begin(read_completion_request(document, limits));
  else if (endpoint == Endpoint::chat)
    begin(read_chat_request(document, limits));
  else
    begin(read_messages_request(document, limits));
  std::unique_ptr<AnswerWriter> writer;
  const std::string model = service_.model_name(options);
  if (endpoint == Endpoint::messages)
    writer = std::make_unique<MessageWriter>(model, job->usage().prompt_tokens);
  else
    writer = std::make_unique<CompletionWriter>(
        make_head(model, endpoint == Endpoint::chat, options.logprobs.has_value()), job->size(),
        options.include_usage);
  if (options.stream) {
    stream(response, log, std::move(job), std::move(writer), std::move(ticket));
  } else {
    whole(response, log, *job, *writer);
  }
}

/// Answers what needs no model; none for another endpoint.
std::optional<Json> Answers::about_tokens(Endpoint endpoint, const Json& document) const {
  const ServeLimits& limits = service_.limits();
  switch (endpoint) {
    case Endpoint::tokenize:
      return service_.tokenize(read_tokenize_request(document, limits));
    case Endpoint::detokenize:
      return service_.detokenize(read_detokenize_request(document));
    case Endpoint::apply_template:
      return service_.apply_template(read_chat_request(document, limits));
    case Endpoint::count_tokens:
      return service_.count_tokens(read_messages_request(document, limits, true));
    default:
      return std::nullopt;
  }
}

void Answers::embeddings(const EmbeddingRequest& parsed, httplib::Response& response,
                         const std::shared_ptr<RequestLog>& log) {
  const Ticket ticket(metrics_, service_.limits().max_clients);
  const Connection& client = Connection::current();
  const auto deadline = Clock::now() + std::chrono::seconds(service_.limits().request_seconds);
  Usage usage;
  const Json reply = service_.embed(
      parsed, usage, [&] { return !client.left() && !cancelled_ && Clock::now() <= deadline; });
  if (reply.is_null() && cancelled_) throw unavailable("the server stops");
  if (reply.is_null() && !client.left()) throw timed_out();
  if (reply.is_null()) return client_left(response, *log);
  log->usage(usage);
  log->status(200);
  response.status = 200;
  response.set_content(dump(reply), "application/json");
}

void Answers::stream(httplib::Response& response, const std::shared_ptr<RequestLog>& log,
                     std::shared_ptr<Job> job, std::unique_ptr<AnswerWriter> writer,
                     std::shared_ptr<Ticket> ticket) {
  const auto state = std::make_shared<Stream>(cancelled_, std::move(job), std::move(writer), log,
                                              std::move(ticket), service_.limits().request_seconds);
  response.status = 200;
  log->status(200);
  response.set_header("Cache-Control", "no-cache");
  response.set_header("X-Accel-Buffering", "no");  // nginx passes events on as they come
  response.set_chunked_content_provider(
      "text/event-stream", [state](std::size_t, httplib::DataSink& sink) { return state->send(sink); });
}

void Answers::whole(httplib::Response& response, const std::shared_ptr<RequestLog>& log, Job& job,
                    AnswerWriter& writer) {
  const Connection& client = Connection::current();
  const auto deadline = Clock::now() + std::chrono::seconds(service_.limits().request_seconds);
  while (!job.done()) {
    const std::vector<Delta> deltas = job.take(kLook);
    log->usage(job.usage());
    for (const Delta& delta : deltas) {
      if (delta.shows()) log->first_token();
      if (!delta.finish.empty()) log->end(delta.finish);
      writer.add(delta);
    }
    if (client.left()) {
      job.cancel();
      return client_left(response, *log);
    }
    if (cancelled_) throw unavailable("the server stops");
    if (Clock::now() > deadline) throw timed_out();
  }
  response.status = 200;
  log->status(200);
  response.set_content(dump(writer.whole(job.usage())), "application/json");
}

}  // namespace caldera::serve
