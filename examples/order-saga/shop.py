"""The table and the queue of the shop: `python shop.py create URL`, `python shop.py show URL`."""

import sys

import boto3


def connect(service, url):
    """Return a client of an emulator, which takes any credentials."""
    session = boto3.session.Session("test", "test", region_name="us-east-1")
    return session.client(service, endpoint_url=url)


def create(url):
    """Create a table with two items, and the queue of the depot."""
    table = connect("dynamodb", url)
    table.create_table(
        TableName="stock",
        KeySchema=[{"AttributeName": "item", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "item", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    for item, pieces in (("lamp", "5"), ("chair", "1")):
        table.put_item(TableName="stock", Item={"item": {"S": item}, "pieces": {"N": pieces}})
    connect("sqs", url).create_queue(QueueName="north")


def show(url):
    """Print what is in stock and how many parcels wait."""
    rows = connect("dynamodb", url).scan(TableName="stock")["Items"]
    for row in sorted(rows, key=lambda row: row["item"]["S"]):
        print(row["item"]["S"], row["pieces"]["N"])
    queue = connect("sqs", url).get_queue_attributes(
        QueueUrl=f"{url}/123456789012/north", AttributeNames=["ApproximateNumberOfMessages"]
    )
    print("parcels", queue["Attributes"]["ApproximateNumberOfMessages"])


if __name__ == "__main__":
    {"create": create, "show": show}[sys.argv[1]](sys.argv[2])
