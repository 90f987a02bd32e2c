import { App, Aspects } from 'aws-cdk-lib';
import { AwsSolutionsChecks, ServerlessChecks } from 'cdk-nag';
import { readSettings, SettingsError } from '../lib/settings';
import { CloudparStack } from '../lib/stack';

const app = new App();
try {
  new CloudparStack(
    app,
    readSettings((name) => app.node.tryGetContext(name), Object.keys(app.node.getAllContext())),
  );
} catch (error) {
  if (error instanceof SettingsError) {
    console.error(`cloudpar: ${error.message}`);
    process.exit(1);
  }
  throw error;
}
Aspects.of(app).add(new AwsSolutionsChecks());
Aspects.of(app).add(new ServerlessChecks());
