// A JavaScript client: a straight line through the sales of each product, fitted by Python's `statistics` module.
//
//     npm install PACKAGE.tgz        (the file that `npm pack` makes: see the page of the JavaScript SDK)
//     cloudpar up                    (in another terminal; it prints the two variables that the next line needs)
//     CLOUDPAR_ENDPOINT=... CLOUDPAR_TOKEN=... node forecast.mjs 100
//
// A task is a Python function, named as `module:function`. Functions of your own work in the same way once the workers
// can import their module.

import { Pool } from '@cloudpar/sdk';

const WEEKS = 26;
const products = Number(process.argv[2] ?? 100);

/** Units sold in each week. Put your own figures in their place. */
function sales(product) {
  return Array.from({ length: WEEKS }, (_, week) => 100 + product * 0.05 * week + 9 * Math.sin(week * (product + 1)));
}

const weeks = Array.from({ length: WEEKS }, (_, week) => week);
const pool = await Pool.open();
try {
  const values = Array.from({ length: products }, (_, product) => [weeks, product === 7 ? [] : sales(product)]);
  const lines = pool.map('statistics:linear_regression', values, { call: 'args' });

  const growing = [];
  const failed = [];
  for await (const line of lines.settled()) {
    if (line.status === 'fulfilled') {
      const [slope, intercept] = line.value;
      growing.push({ product: line.index, slope, next: intercept + slope * WEEKS });
    } else {
      failed.push(`product ${line.index}: ${line.reason.message}`);
    }
  }

  growing.sort((a, b) => b.slope - a.slope);
  for (const { product, slope, next } of growing.slice(0, 3)) {
    console.log(`product ${product}: +${slope.toFixed(2)} a week, next week ${next.toFixed(0)} units`);
  }
  console.log(`${growing.length} products, ${failed.length} without a forecast`);
  for (const text of failed) console.log(text);
} finally {
  await pool.close();
}
