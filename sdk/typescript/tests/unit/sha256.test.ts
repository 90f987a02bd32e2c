import { createHmac, randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { Hmac } from '../../src/sha256.ts';

test('the HMACs of short messages are those of node:crypto, at every length', () => {
  for (const keyBytes of [1, 32, 64]) {
    const key = randomBytes(keyBytes);
    const hmac = new Hmac(key, 300);
    for (let length = 0; length <= 300; length += 1) {
      const message = randomBytes(length);
      hmac.message.set(message);
      const made = Buffer.alloc(34, 1);
      hmac.write(length, made, 1, 32);
      const expected = createHmac('sha256', key).update(message).digest();
      expect(made).toEqual(Buffer.concat([Buffer.of(1), expected, Buffer.of(1)]));
    }
  }
});
