// Takes the address that a server listens at.
#pragma once

#include <httplib.h>

#include <string>

namespace caldera::serve {

/// Binds the server to an address and a port, 0 for a free one, and returns the port. No other program may
/// have it, whatever that one permits: by default cpp-httplib lets two servers share a port, of which each
/// gets some of the requests. As many clients wait to be accepted as the system allows. Throws FileError
/// where it cannot be had.
int bind_alone(httplib::Server& server, const std::string& host, int port);

}  // namespace caldera::serve
