import { defineConfig } from 'vitest/config';

// Not among the tests of `make test`: what it runs on is a gigabyte, which `make runtimes` installs.
export default defineConfig({
  test: {
    include: ['tests/runtimes/**/*.test.ts'],
    globalSetup: ['tests/integration/embedded.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
