#include "lm/chat/template/base/strftime.h"

#include <fmt/format.h>

#include <cctype>

namespace caldera::chat {
namespace {

using std::chrono::days;

constexpr std::string_view kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                      "Thursday", "Friday", "Saturday"};
constexpr std::string_view kMonths[] = {"January",   "February", "March",    "April",
                                        "May",       "June",     "July",     "August",
                                        "September", "October",  "November", "December"};

struct Calendar {
  int year, month, day, hour, minute, second, microsecond;
  int weekday;      ///< 0 is Sunday
  int day_of_year;  ///< from 0
};

Calendar calendar_of(std::chrono::local_time<std::chrono::microseconds> time) {
  const auto day = std::chrono::floor<days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  const auto new_year = std::chrono::local_days(date.year() / std::chrono::January / 1);
  return {static_cast<int>(date.year()),
          static_cast<int>(static_cast<unsigned>(date.month())),
          static_cast<int>(static_cast<unsigned>(date.day())),
          static_cast<int>(clock.hours().count()),
          static_cast<int>(clock.minutes().count()),
          static_cast<int>(clock.seconds().count()),
          static_cast<int>(clock.subseconds().count()),
          static_cast<int>(std::chrono::weekday(day).c_encoding()),
          static_cast<int>((day - new_year).count())};
}

/// Year and week by ISO 8601.
std::pair<int, int> iso_week(const Calendar& c) {
  const int monday_based = (c.weekday + 6) % 7;
  int week = (c.day_of_year - monday_based + 10) / 7;
  const auto weeks_of = [](int year) {
    const auto p = [](int y) { return (y + y / 4 - y / 100 + y / 400) % 7; };
    return p(year) == 4 || p(year - 1) == 3 ? 53 : 52;
  };
  if (week < 1) return {c.year - 1, weeks_of(c.year - 1)};
  return week > weeks_of(c.year) ? std::pair(c.year + 1, 1) : std::pair(c.year, week);
}

struct Number {
  int value;
  int width;
  char pad = '0';
};

/// The number that a letter stands for; of width 0 for those that stand for none.
Number number_of(char letter, const Calendar& c) {
  const int hour12 = c.hour % 12 == 0 ? 12 : c.hour % 12;
  switch (letter) {
    case 'Y':
      return {c.year, 1};
    case 'y':
      return {(c.year % 100 + 100) % 100, 2};
    case 'C':
      return {c.year / 100, 2};
    case 'G':
      return {iso_week(c).first, 1};
    case 'g':
      return {iso_week(c).first % 100, 2};
    case 'm':
      return {c.month, 2};
    case 'd':
      return {c.day, 2};
    case 'e':
      return {c.day, 2, ' '};
    case 'j':
      return {c.day_of_year + 1, 3};
    case 'H':
      return {c.hour, 2};
    case 'k':
      return {c.hour, 2, ' '};
    case 'I':
      return {hour12, 2};
    case 'l':
      return {hour12, 2, ' '};
    case 'M':
      return {c.minute, 2};
    case 'S':
      return {c.second, 2};
    case 'f':
      return {c.microsecond, 6};
    case 'u':
      return {c.weekday == 0 ? 7 : c.weekday, 1};
    case 'w':
      return {c.weekday, 1};
    case 'U':
      return {(c.day_of_year + 7 - c.weekday) / 7, 2};
    case 'W':
      return {(c.day_of_year + 7 - (c.weekday + 6) % 7) / 7, 2};
    case 'V':
      return {iso_week(c).second, 2};
    default:
      return {0, 0};
  }
}

/// The format that a letter is short for.
std::string_view combination(char letter) {
  switch (letter) {
    case 'c':
      return "%a %b %e %H:%M:%S %Y";
    case 'D':
    case 'x':
      return "%m/%d/%y";
    case 'F':
      return "%Y-%m-%d";
    case 'R':
      return "%H:%M";
    case 'T':
    case 'X':
      return "%H:%M:%S";
    case 'r':
      return "%I:%M:%S %p";
    default:
      return {};
  }
}

/// The word that a letter stands for; false where it stands for none.
bool word_of(char letter, const Calendar& c, std::string& word) {
  switch (letter) {
    case 'a':
      word = kDays[c.weekday].substr(0, 3);
      return true;
    case 'A':
      word = kDays[c.weekday];
      return true;
    case 'b':
    case 'h':
      word = kMonths[c.month - 1].substr(0, 3);
      return true;
    case 'B':
      word = kMonths[c.month - 1];
      return true;
    case 'p':
      word = c.hour < 12 ? "AM" : "PM";
      return true;
    case 'P':
      word = c.hour < 12 ? "am" : "pm";
      return true;
    case 'n':
      word = "\n";
      return true;
    case 't':
      word = "\t";
      return true;
    case '%':
      word = "%";
      return true;
    case 'z':
    case 'Z':
      word.clear();
      return true;  // the time has no zone
    default:
      return false;
  }
}

void add_time(std::string& out, std::string_view format, const Calendar& c) {
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out.push_back(format[i]);
      continue;
    }
    const std::size_t begin = i++;
    char flag = '\0';
    while (i + 1 < format.size() && std::string_view("-_0^#").find(format[i]) != std::string_view::npos)
      flag = format[i++];
    const char letter = format[i];
    const Number number = number_of(letter, c);
    std::string part;
    if (number.width > 0) {
      const char pad = flag == '_' ? ' ' : flag == '0' ? '0' : number.pad;
      part = fmt::format("{}", number.value);
      const auto width = static_cast<std::size_t>(flag == '-' ? 0 : number.width);
      if (part.size() < width) part.insert(0, width - part.size(), pad);
    } else if (!combination(letter).empty()) {
      add_time(part, combination(letter), c);
    } else if (letter == 's') {
      const auto day = std::chrono::local_days(std::chrono::year(c.year) / c.month / c.day);
      part = fmt::format(
          "{}", day.time_since_epoch().count() * 86400LL + c.hour * 3600LL + c.minute * 60LL + c.second);
    } else if (!word_of(letter, c, part)) {
      part = format.substr(begin, i + 1 - begin);
    }
    if (flag == '^') {
      for (char& each : part) each = static_cast<char>(std::toupper(static_cast<unsigned char>(each)));
    }
    out += part;
  }
}

}  // namespace

std::string format_time(std::chrono::local_time<std::chrono::microseconds> time, std::string_view format) {
  std::string out;
  add_time(out, format, calendar_of(time));
  return out;
}

}  // namespace caldera::chat
