def next_number(event, context):
    return f"{event['customer']}-0001"
