import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    projects: [
      // Longer than a busy machine takes, so that only a hanging test exceeds it.
      { test: { name: 'unit', include: ['tests/unit/**/*.test.ts'], testTimeout: 60_000 } },
      {
        test: {
          name: 'integration',
          include: ['tests/{integration,package}/**/*.test.ts'],
          globalSetup: ['tests/integration/embedded.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'master and worker of 0.2.0',
          include: ['tests/integration/{pool,handles}.test.ts'],
          globalSetup: ['tests/integration/earlier.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
