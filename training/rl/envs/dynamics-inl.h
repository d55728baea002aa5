// The five classic environments, each written once: for numbers, for vectors of a processor and for graphs.
// Included inside of a namespace that has the functions of numbers.h for the type of numbers, once in each.
// Private to training/rl/.
//
// Constants, order of operations and ends are those of Gymnasium 1.0 (gymnasium/envs/classic_control/*.py;
// Barto, Sutton and Anderson 1983; Moore 1990; Sutton 1996), so that numbers agree to the last bit.

// NOLINTBEGIN(misc-definitions-in-headers)

/// Tells of a step what is not the state. V: double, LazyTensor or a vector of doubles; M: what comparing two
/// of them gives.
template <class V, class M>
struct Outcome {
  V reward;
  M ended;
};

inline constexpr double kPi = std::numbers::pi;

struct CartPole {
  static constexpr const char* kName = "CartPole-v1";
  static constexpr std::int64_t kSteps = 500;
  static constexpr std::size_t kState = 4, kObservation = 4, kDraws = 4;
  static constexpr std::int64_t kChoices = 2;
  static constexpr double kReach = 2.4, kLean = 12 * 2 * kPi / 360;
  static constexpr std::array<double, 4> kBounds{kReach * 2, 1e308, kLean * 2, 1e308};

  /// Makes the first state of numbers in [0, 1).
  template <class V>
  static std::array<V, 4> begin(const std::array<V, 4>& u) {
    const auto place = [](const V& x) { return V(-0.05 + x * 0.1); };
    return {place(u[0]), place(u[1]), place(u[2]), place(u[3])};
  }
  template <class V>
  static auto advance(std::array<V, 4>& s, const V& action) {
    constexpr double kGravity = 9.8, kPole = 0.1, kTotal = 0.1 + 1.0, kHalf = 0.5, kMoment = 0.1 * 0.5,
                     kForce = 10, kTau = 0.02;
    const V force = choose(action > 0.5, V(kForce), V(-kForce));
    const V c = cosine(s[2]), n = sine(s[2]);
    const V push = (force + kMoment * (s[3] * s[3]) * n) / kTotal;
    const V turning = (kGravity * n - c * push) / (kHalf * (4.0 / 3.0 - kPole * (c * c) / kTotal));
    const V speeding = push - kMoment * turning * c / kTotal;
    s[0] = s[0] + kTau * s[1];
    s[1] = s[1] + kTau * speeding;
    s[2] = s[2] + kTau * s[3];
    s[3] = s[3] + kTau * turning;
    const auto ended = either(either(s[0]<-kReach, s[0]> kReach), either(s[2]<-kLean, s[2]> kLean));
    return Outcome<V, decltype(action > 0.5)>{V(1.0), ended};
  }
  template <class V>
  static std::array<V, 4> observe(const std::array<V, 4>& s) {
    return s;
  }
};

struct Pendulum {
  static constexpr const char* kName = "Pendulum-v1";
  static constexpr std::int64_t kSteps = 200;
  static constexpr std::size_t kState = 2, kObservation = 3, kDraws = 2;
  static constexpr std::int64_t kChoices = 0;
  static constexpr double kForce = 2;
  static constexpr std::array<double, 3> kBounds{1, 1, 8};

  template <class V>
  static std::array<V, 2> begin(const std::array<V, 2>& u) {
    return {V(-kPi + u[0] * (2 * kPi)), V(-1.0 + u[1] * 2.0)};
  }
  template <class V>
  static auto advance(std::array<V, 2>& s, const V& action) {
    constexpr double kGravity = 10, kTau = 0.05, kSpeed = 8;
    const V u = at_most(at_least(action, -kForce), kForce);
    const V angle = modulo(s[0] + kPi, 2 * kPi) - kPi;
    const V cost = angle * angle + 0.1 * (s[1] * s[1]) + 0.001 * (u * u);
    const V speed = s[1] + (3 * kGravity / 2 * sine(s[0]) + 3.0 * u) * kTau;
    s[1] = at_most(at_least(speed, -kSpeed), kSpeed);
    s[0] = s[0] + s[1] * kTau;
    return Outcome<V, decltype(action > 0.5)>{-cost, speed != speed};
  }
  template <class V>
  static std::array<V, 3> observe(const std::array<V, 2>& s) {
    return {cosine(s[0]), sine(s[0]), s[1]};
  }
};

/// Both mountain cars: a car that has not the power to drive straight up.
struct Mountain {
  static constexpr std::size_t kState = 2, kObservation = 2, kDraws = 2;
  static constexpr std::array<double, 2> kBounds{1.2, 0.07};

  template <class V>
  static std::array<V, 2> begin(const std::array<V, 2>& u) {
    return {V(-0.6 + u[0] * 0.2), V(u[1] * 0.0)};
  }
  template <class V>
  static std::array<V, 2> observe(const std::array<V, 2>& s) {
    return s;
  }
  /// Moves the car at its new speed, between the walls.
  template <class V>
  static void drive(std::array<V, 2>& s, const V& speed) {
    const V v = at_most(at_least(speed, -0.07), 0.07);
    s[0] = at_most(at_least(s[0] + v, -1.2), 0.6);
    s[1] = choose(both(s[0] <= -1.2, v < 0.0), V(0.0), v);
  }
};

struct MountainCar : Mountain {
  static constexpr const char* kName = "MountainCar-v0";
  static constexpr std::int64_t kSteps = 200;
  static constexpr std::int64_t kChoices = 3;

  template <class V>
  static auto advance(std::array<V, 2>& s, const V& action) {
    drive(s, V(s[1] + ((action - 1.0) * 0.001 + cosine(3.0 * s[0]) * -0.0025)));
    return Outcome<V, decltype(action > 0.5)>{V(-1.0), both(s[0] >= 0.5, s[1] >= 0.0)};
  }
};

struct MountainCarContinuous : Mountain {
  static constexpr const char* kName = "MountainCarContinuous-v0";
  static constexpr std::int64_t kSteps = 999;
  static constexpr std::int64_t kChoices = 0;
  static constexpr double kForce = 1;

  template <class V>
  static auto advance(std::array<V, 2>& s, const V& action) {
    const V force = at_most(at_least(action, -kForce), kForce);
    drive(s, V(s[1] + (force * 0.0015 - 0.0025 * cosine(3.0 * s[0]))));
    const auto ended = both(s[0] >= 0.45, s[1] >= 0.0);
    const V reward = choose(ended, V(100.0), V(0.0)) - action * action * 0.1;
    return Outcome<V, decltype(action > 0.5)>{reward, ended};
  }
};

struct Acrobot {
  static constexpr const char* kName = "Acrobot-v1";
  static constexpr std::int64_t kSteps = 500;
  static constexpr std::size_t kState = 4, kObservation = 6, kDraws = 4;
  static constexpr std::int64_t kChoices = 3;
  static constexpr std::array<double, 6> kBounds{1, 1, 1, 1, 4 * kPi, 9 * kPi};

  template <class V>
  static std::array<V, 4> begin(const std::array<V, 4>& u) {
    const auto place = [](const V& x) { return V(-0.1 + x * 0.2); };
    return {place(u[0]), place(u[1]), place(u[2]), place(u[3])};
  }
  template <class V>
  static auto advance(std::array<V, 4>& s, const V& action) {
    constexpr double kTau = 0.2;
    const V torque = action - 1.0;
    const auto k1 = slope(s, torque);
    const auto k2 = slope(moved(s, kTau / 2, k1), torque);
    const auto k3 = slope(moved(s, kTau / 2, k2), torque);
    const auto k4 = slope(moved(s, kTau, k3), torque);
    for (std::size_t i = 0; i < 4; ++i)
      s[i] = s[i] + kTau / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]);
    s[0] = wrapped(s[0]);
    s[1] = wrapped(s[1]);
    s[2] = at_most(at_least(s[2], -4 * kPi), 4 * kPi);
    s[3] = at_most(at_least(s[3], -9 * kPi), 9 * kPi);
    const auto ended = -cosine(s[0]) - cosine(s[1] + s[0]) > 1.0;
    return Outcome<V, decltype(action > 0.5)>{choose(ended, V(0.0), V(-1.0)), ended};
  }
  template <class V>
  static std::array<V, 6> observe(const std::array<V, 4>& s) {
    return {cosine(s[0]), sine(s[0]), cosine(s[1]), sine(s[1]), s[2], s[3]};
  }

 private:
  template <class V>
  static std::array<V, 4> moved(const std::array<V, 4>& s, double by, const std::array<V, 4>& k) {
    return {s[0] + by * k[0], s[1] + by * k[1], s[2] + by * k[2], s[3] + by * k[3]};
  }
  /// Returns the derivatives of angles and speeds, by Sutton and Barto's equations.
  template <class V>
  static std::array<V, 4> slope(const std::array<V, 4>& s, const V& torque) {
    constexpr double kGravity = 9.8;
    const V c2 = cosine(s[1]), n2 = sine(s[1]);
    const V d1 = 0.25 + (1.25 + c2) + 1.0 + 1.0;
    const V d2 = 0.25 + 0.5 * c2 + 1.0;
    const V phi2 = 0.5 * kGravity * cosine(s[0] + s[1] - kPi / 2.0);
    const V phi1 =
        -0.5 * (s[3] * s[3]) * n2 - s[3] * s[2] * n2 + 1.5 * kGravity * cosine(s[0] - kPi / 2) + phi2;
    const V a2 = (torque + d2 / d1 * phi1 - 0.5 * (s[2] * s[2]) * n2 - phi2) / (1.25 - d2 * d2 / d1);
    const V a1 = -(d2 * a2 + phi1) / d1;
    return {s[2], s[3], a1, a2};
  }
  /// Wraps to [-pi, pi] an angle that is at most three rounds outside: no step goes further.
  template <class V>
  static V wrapped(V x) {
    for (int round = 0; round < 3; ++round) x = choose(x > kPi, V(x - 2 * kPi), x);
    for (int round = 0; round < 3; ++round) x = choose(x < -kPi, V(x + 2 * kPi), x);
    return x;
  }
};

// NOLINTEND(misc-definitions-in-headers)
