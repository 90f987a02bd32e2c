import { defineConfig } from 'vitest/config';

// Separate from `make test`: the runtimes are a gigabyte, which `make runtimes` installs.
export default defineConfig({
  test: {
    include: ['tests/runtimes/**/*.test.ts'],
    globalSetup: ['tests/integration/embedded.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
