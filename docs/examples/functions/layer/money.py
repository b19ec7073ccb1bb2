def format_amount(amount, currency):
    return f"{amount:.2f} {currency}"
