def handler(event, context):
    currency = event["BatchInput"]["currency"]
    return [
        f"{item['line']['sku']}: {int(item['line']['count']) * 3} {currency}"
        for item in event["Items"]
    ]
