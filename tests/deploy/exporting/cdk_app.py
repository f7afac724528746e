"""Take a template into a stack of CDK: ``cdk_app.py TEMPLATE PARAMETERS FOLDER``.

It runs in an environment of its own, which ``make setup-cdk`` makes.
"""

import json
import sys

from aws_cdk import App, DefaultStackSynthesizer, Environment, Stack
from aws_cdk.cloudformation_include import CfnInclude

template, parameters, folder = sys.argv[1:]
app = App(outdir=folder)
stack = Stack(
    app,
    "Own",
    env=Environment(account="123456789012", region="us-east-1"),
    synthesizer=DefaultStackSynthesizer(generate_bootstrap_version_rule=False),
)
CfnInclude(stack, "Pipeline", template_file=template, parameters=json.loads(parameters))
app.synth()
