#include <caldera/caldera.h>
#include <caldera/training.h>
#include <caldera/v1.h>

#include <cstdio>

int main() {
  std::printf("built against the installed Caldera, device %s\n", caldera::Device::cpu().to_string().c_str());
}
