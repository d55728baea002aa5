// The exceptions that Caldera throws. Every message says what failed, where, and what to do about it.
#pragma once

#include <stdexcept>
#include <string>

namespace caldera {

/// Base of every exception that Caldera throws on purpose.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Operands whose shapes (or axes) do not fit the operation. Thrown by the call that builds the node.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// Operands whose dtypes the operation or the device does not accept.
class DTypeError : public Error {
 public:
  using Error::Error;
};

/// A device that is missing, lost, or out of memory, or operands on different devices.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// Memory that a device does not have, or that its limit does not allow. Nothing was done; the engine goes
/// on.
class OutOfMemoryError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// An operation that has no gradient rule, or a gradient that would be lost.
class GradientError : public Error {
 public:
  using Error::Error;
};

/// A compiled plan that the verifier rejects: a defect of Caldera, never of the program that uses it.
class PlanError : public Error {
 public:
  using Error::Error;
};

/// A step whose results are not those of the f64 interpreter (CALDERA_CHECK): a defect of Caldera or of the
/// device's driver, never of the program that uses them.
class CheckError : public Error {
 public:
  using Error::Error;
};

/// Work that was ended early because somebody asked for it (EvalFuture::cancel). The engine goes on.
class CancelledError : public Error {
 public:
  using Error::Error;
};

/// A file that is missing, unreadable, or not what it claims to be.
class FileError : public Error {
 public:
  using Error::Error;
};

/// An argument or configuration value outside its domain.
class ValueError : public Error {
 public:
  using Error::Error;
};

}  // namespace caldera
