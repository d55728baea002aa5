# tiny_pipeline on a Vulkan device.
. tests/support/cli.sh
require_vulkan
CALDERA_TEST_DEVICE=vulkan sh tests/cli/tiny_pipeline.sh
