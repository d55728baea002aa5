#include "lm/serve/http/answers.h"

#include <chrono>

#include "lm/serve/http/connection.h"
#include "lm/serve/protocol/messages_request.h"
#include "lm/serve/protocol/ollama_request.h"
#include "lm/serve/protocol/responses_request.h"
#include "lm/serve/service/message_writer.h"
#include "lm/serve/service/ollama_writer.h"
#include "lm/serve/service/response_writer.h"

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

/// The model that a request names: what is wrong with the field is told where the request is read.
std::string model_named(const Json& document, Endpoint endpoint) {
  const auto field = document.find("model");
  if (field == document.end() || !field->is_string()) return {};
  std::string name = field->get<std::string>();
  const bool of_ollama = endpoint == Endpoint::ollama_chat || endpoint == Endpoint::ollama_generate;
  constexpr std::string_view kTag = ":latest";
  if (of_ollama && name.ends_with(kTag)) name.resize(name.size() - kTag.size());
  return name;
}

std::string model_told(const Json& document, const Service& service) {
  const auto field = document.find("model");
  return field != document.end() && field->is_string() ? field->get<std::string>() : service.served().name;
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
  Stream(const std::atomic<bool>& cancelled, std::shared_ptr<Service> service, std::shared_ptr<Job> job,
         std::unique_ptr<AnswerWriter> writer, std::shared_ptr<RequestLog> log,
         std::shared_ptr<Ticket> ticket, int seconds)
      : cancelled_(cancelled),
        service_(std::move(service)),
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
    if (out.empty() && Clock::now() > written_ + kKeepAlive) out = writer_->silence();
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
  std::shared_ptr<Service> service_;  // the last to go
  std::shared_ptr<Job> job_;
  std::unique_ptr<AnswerWriter> writer_;
  std::shared_ptr<RequestLog> log_;
  std::shared_ptr<Ticket> ticket_;
  const Connection& client_ = Connection::current();
  Clock::time_point deadline_;
  Clock::time_point written_ = Clock::now();
};

/// Holds a request whose texts are being generated. Without a job the writer's answer is there already.
struct Answers::Begun {
  std::shared_ptr<Service> service;  // the last to go
  std::shared_ptr<Ticket> ticket;
  std::shared_ptr<Job> job;
  std::unique_ptr<AnswerWriter> writer;
  bool streams = false;
  std::optional<Json> known;  // the answer itself, where nothing is generated
};

void Answers::answer(Endpoint endpoint, const std::string& body, httplib::Response& response,
                     const std::shared_ptr<RequestLog>& log) {
  if (closed_) throw unavailable("the server stops");
  const Json document = parse_body(body, limits_.max_depth);
  Begun begun;
  begun.service = services_.find(model_named(document, endpoint));
  Service& service = *begun.service;
  log->model(model_told(document, service));
  if (endpoint == Endpoint::embeddings) {
    const EmbeddingRequest request = read_embedding_request(document, service.limits());
    return vectors([&](Usage& usage, const auto& go_on) { return service.embed(request, usage, go_on); },
                   response, log);
  }
  if (endpoint == Endpoint::rerank) {
    const RerankRequest request = read_rerank_request(document, service.limits());
    return vectors([&](Usage& usage, const auto& go_on) { return service.rerank(request, usage, go_on); },
                   response, log);
  }
  std::optional<Json> known = about_tokens(service, endpoint, document);
  if (!known) {
    begin(endpoint, document, begun);
    known = std::move(begun.known);
  }
  if (known) {
    log->status(200);
    response.status = 200;
    response.set_content(dump(*known), "application/json");
  } else if (begun.streams) {
    stream(response, log, std::move(begun));
  } else {
    whole(response, log, begun);
  }
}

template <class Request>
void Answers::start(const Request& request, Begun& begun) {
  begun.ticket = std::make_shared<Ticket>(metrics_, limits_.max_clients);
  begun.streams = request.options.stream;
  begun.job = begun.service->start(request);
}

/// Starts a request for texts, and makes what writes its answer.
void Answers::begin(Endpoint endpoint, const Json& document, Begun& begun) {
  const Service& service = *begun.service;
  const ServeLimits& limits = service.limits();
  const auto completion_writer = [&](const CompletionOptions& options, bool chat) {
    return std::make_unique<CompletionWriter>(
        make_head(service.model_name(options), chat, options.logprobs.has_value()), begun.job->size(),
        options.include_usage);
  };
  switch (endpoint) {
    case Endpoint::completions: {
      const CompletionRequest request = read_completion_request(document, limits);
      start(request, begun);
      begun.writer = completion_writer(request.options, false);
      break;
    }
    case Endpoint::messages: {
      const ChatRequest request = read_messages_request(document, limits);
      start(request, begun);
      begun.writer = std::make_unique<MessageWriter>(service.model_name(request.options),
                                                     begun.job->usage().prompt_tokens);
      break;
    }
    case Endpoint::responses: {
      ResponsesRequest request = read_responses_request(document, limits);
      const CompletionOptions& options = request.chat.options;
      start(request.chat, begun);
      begun.writer = std::make_unique<ResponseWriter>(service.model_name(options), std::move(request.told),
                                                      options.logprobs.has_value());
      break;
    }
    case Endpoint::ollama_chat:
    case Endpoint::ollama_generate: {
      const OllamaRequest request = endpoint == Endpoint::ollama_chat
                                        ? read_ollama_chat(document, limits)
                                        : read_ollama_generate(document, limits);
      CompletionOptions named;
      named.model = request.model;
      const std::string model = service.model_name(named);
      begun.writer = std::make_unique<OllamaWriter>(model, request.chat);
      if (const auto* chat = std::get_if<ChatRequest>(&request.asked)) {
        start(*chat, begun);
      } else if (const auto* completion = std::get_if<CompletionRequest>(&request.asked)) {
        start(*completion, begun);
      } else {
        if (!request.model.empty()) service.model(request.model);
        begun.known = ollama_loaded(model, request.chat);
      }
      break;
    }
    default: {
      const ChatRequest request = read_chat_request(document, limits);
      start(request, begun);
      begun.writer = completion_writer(request.options, true);
    }
  }
}

/// Answers what needs no model; none for another endpoint.
std::optional<Json> Answers::about_tokens(const Service& service, Endpoint endpoint, const Json& document) {
  const ServeLimits& limits = service.limits();
  switch (endpoint) {
    case Endpoint::tokenize:
      return service.tokenize(read_tokenize_request(document, limits));
    case Endpoint::detokenize:
      return service.detokenize(read_detokenize_request(document));
    case Endpoint::apply_template:
      return service.apply_template(read_chat_request(document, limits));
    case Endpoint::count_tokens:
      return service.count_tokens(read_messages_request(document, limits, true));
    default:
      return std::nullopt;
  }
}

void Answers::vectors(const OfVectors& answer, httplib::Response& response,
                      const std::shared_ptr<RequestLog>& log) {
  const Ticket ticket(metrics_, limits_.max_clients);
  const Connection& client = Connection::current();
  const auto deadline = Clock::now() + std::chrono::seconds(limits_.request_seconds);
  Usage usage;
  const Json reply = answer(usage, [&] { return !client.left() && !cancelled_ && Clock::now() <= deadline; });
  if (reply.is_null() && cancelled_) throw unavailable("the server stops");
  if (reply.is_null() && !client.left()) throw timed_out();
  if (reply.is_null()) return client_left(response, *log);
  log->usage(usage);
  log->status(200);
  response.status = 200;
  response.set_content(dump(reply), "application/json");
}

void Answers::stream(httplib::Response& response, const std::shared_ptr<RequestLog>& log, Begun begun) {
  const char* type = begun.writer->stream_type();
  const auto state = std::make_shared<Stream>(cancelled_, std::move(begun.service), std::move(begun.job),
                                              std::move(begun.writer), log, std::move(begun.ticket),
                                              limits_.request_seconds);
  response.status = 200;
  log->status(200);
  response.set_header("Cache-Control", "no-cache");
  response.set_header("X-Accel-Buffering", "no");  // nginx passes events on as they come
  response.set_chunked_content_provider(
      type, [state](std::size_t, httplib::DataSink& sink) { return state->send(sink); });
}

void Answers::whole(httplib::Response& response, const std::shared_ptr<RequestLog>& log, Begun& begun) {
  Job& job = *begun.job;
  AnswerWriter& writer = *begun.writer;
  const Connection& client = Connection::current();
  const auto deadline = Clock::now() + std::chrono::seconds(limits_.request_seconds);
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
