// Defines the error of a chat template.
#pragma once

#include <cstddef>
#include <string>

#include "engine/base/error.h"

namespace caldera {

/// A template that does not parse, asks for what is not supported, exceeds a limit, or does with the
/// conversation what Python would raise an error for.
class ChatTemplateError : public Error {
 public:
  /// `line` and `column` count from 1, in characters; 0 where the error is at no place in the template.
  ChatTemplateError(const std::string& message, std::size_t line, std::size_t column)
      : Error(line == 0 ? "chat template: " + message
                        : "chat template, line " + std::to_string(line) + ", column " +
                              std::to_string(column) + ": " + message),
        message_(message),
        line_(line),
        column_(column) {}

  /// The message without the place.
  const std::string& message() const { return message_; }
  std::size_t line() const { return line_; }
  std::size_t column() const { return column_; }

 private:
  std::string message_;
  std::size_t line_;
  std::size_t column_;
};

/// The template refuses the conversation: it called raise_exception(), with message() as argument.
class ChatTemplateRefusal : public ChatTemplateError {
 public:
  using ChatTemplateError::ChatTemplateError;
};

}  // namespace caldera
