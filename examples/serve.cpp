// Serves a model over HTTP, by OpenAI's API, until Ctrl-C: serve MODEL [PORT]
#include <caldera/caldera.h>
#include <caldera/serve.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  using namespace caldera;  // NOLINT(google-build-using-namespace): an example may
  if (argc < 2) {
    std::fprintf(stderr, "usage: serve MODEL [PORT]\n");
    return 2;
  }
  try {
    serve::ModelServerOptions options;
    options.http.port = argc > 2 ? std::atoi(argv[2]) : 8080;
    options.batch.max_batch = 8;
    serve::ModelServer server(argv[1], options);
    server.run([&] {
      std::printf("%s at %s/v1\n", server.name().c_str(), server.url().c_str());
      std::fflush(stdout);
    });
  } catch (const Error& error) {
    std::fprintf(stderr, "serve: %s\n", error.what());
    return 1;
  }
}
